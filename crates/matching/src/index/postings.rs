//! Which plans of a feed have a term in their key, and what it brings.
//!
//! Feed by feed, its terms are spread over buckets of [`RUNS_A_BUCKET`] on average. A bucket is a row of runs, each a
//! header (a part of the term's hash, whether the term is stemmed, how many postings) and its postings. So what a
//! post's term means to a feed takes two reads beyond the cache, where the bucket begins and the bucket itself, of
//! which none waits for those of another term. 4 bytes a posting, 4 a term of a feed, and a little.
//!
//! Two terms of one bucket whose parts of the hash are alike (one pair in eight thousand) are taken for each
//! other: their plans are then asked in vain, and none is left out.

use std::ops::Range;

use super::{
    key::{ENOUGH, PASS},
    terms::number,
};

const PARTS_BITS: u32 = 12;
/// As many watches of a feed as a posting can number.
const WATCHES: usize = 1 << (u32::BITS - PARTS_BITS);
const COUNT_BITS: u32 = 18;
const TAG_BITS: u32 = u32::BITS - 1 - COUNT_BITS;
/// As many watches as a feed can have: more would not fit a run.
pub(super) const MAX_WATCHES: usize = 1 << (COUNT_BITS - 1);
const _: () = assert!(MAX_WATCHES <= WATCHES);

const RUNS_A_BUCKET: usize = 2;
/// Words of a line of the cache.
const LINE: u32 = 16;

/// A frequency in 256ths.
const ONCE: u32 = 256;

#[derive(Debug, Default)]
pub(super) struct Postings {
    /// By feed, its first bucket; one more behind the last feed.
    feeds: Vec<u32>,
    /// Where each bucket begins; one more behind the last.
    begins: Vec<u32>,
    buckets: Vec<u32>,
}

/// Of one feed.
#[derive(Clone, Copy)]
pub(super) struct OfFeed<'a> {
    begins: &'a [u32],
    buckets: &'a [u32],
}

/// The postings of a term.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<'a> {
    postings: &'a [u32],
    stemmed: bool,
}

impl Postings {
    /// Of the feed at that place.
    pub(super) fn of_feed(&self, place: usize) -> OfFeed<'_> {
        let buckets = self.feeds[place] as usize..self.feeds[place + 1] as usize;
        OfFeed {
            begins: &self.begins[buckets.start..=buckets.end],
            buckets: &self.buckets,
        }
    }

    /// Bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        let lists = [&self.feeds, &self.begins, &self.buckets];
        lists.iter().map(|list| list.capacity()).sum::<usize>() * size_of::<u32>()
    }
}

impl<'a> OfFeed<'a> {
    /// The bucket of a term. Reads where it begins.
    #[inline]
    pub(super) fn bucket(self, term: u32) -> Range<u32> {
        let buckets = self.begins.len() - 1;
        if buckets == 0 {
            return 0..0;
        }
        let at = place(term, buckets);
        self.begins[at]..self.begins[at + 1]
    }

    /// Reads where a bucket begins and a line further on, so that most of it is near when it is looked at.
    #[inline]
    pub(super) fn touch(self, bucket: &Range<u32>) -> u32 {
        let behind = (bucket.start + LINE).min(bucket.end - 1);
        self.buckets[bucket.start as usize] ^ self.buckets[behind as usize]
    }

    /// What the bucket has of the term.
    #[inline]
    pub(super) fn runs(self, bucket: Range<u32>, term: u32) -> impl Iterator<Item = Run<'a>> {
        let mut rest = &self.buckets[bucket.start as usize..bucket.end as usize];
        let tag = tag(term);
        std::iter::from_fn(move || {
            while let Some((&header, behind)) = rest.split_first() {
                let count = header & ((1 << COUNT_BITS) - 1);
                let (postings, next) = behind.split_at(count as usize);
                rest = next;
                if header >> (COUNT_BITS + 1) == tag {
                    return Some(Run {
                        postings,
                        stemmed: header >> COUNT_BITS & 1 == 1,
                    });
                }
            }
            None
        })
    }
}

impl<'a> Run<'a> {
    /// Whether it matters how often the term occurs.
    pub(super) fn is_stemmed(self) -> bool {
        self.stemmed
    }

    /// Watches, numbered from 0 within their feed, and what the term brings to each, however often it occurs.
    #[inline]
    pub(super) fn once(self) -> impl Iterator<Item = (usize, u16)> + 'a {
        self.postings.iter().map(|&posting| {
            let parts = (posting & ((1 << PARTS_BITS) - 1)) as u16;
            ((posting >> PARTS_BITS) as usize, parts)
        })
    }

    /// As [`Self::once`], for a term that counts so many times: a saturated frequency, which is 0 to 3.
    #[inline]
    pub(super) fn times(self, saturated: f64) -> impl Iterator<Item = (usize, u16)> + 'a {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturation lies between 0 and 3"
        )]
        let times = (saturated * f64::from(ONCE)).ceil() as u32 + 1;
        let brings = move |parts: u16| {
            #[expect(clippy::cast_possible_truncation, reason = "4,095 times 3 at most")]
            let brought = (u32::from(parts) * times).div_ceil(ONCE) as u16;
            if parts == ENOUGH { PASS } else { brought }
        };
        self.once()
            .map(move |(watch, parts)| (watch, brings(parts)))
    }
}

/// Gathers postings, feed by feed.
#[derive(Default)]
pub(super) struct PostingsBuilder {
    postings: Postings,
    /// By term: how many watches of the feed at hand have it, and then where its next posting goes.
    of_term: Vec<u32>,
    /// Those of which there are any.
    terms: Vec<u32>,
    ends: Vec<u32>,
}

impl PostingsBuilder {
    pub(super) fn new(terms: usize) -> Self {
        Self {
            of_term: vec![0; terms],
            ..Self::default()
        }
    }

    /// Adds a feed by the keys of its watches: terms and what they bring, each term once in a key. A feed whose
    /// postings nobody asks for has none. Answers with all terms of the keys, each once.
    pub(super) fn push<'a>(
        &mut self,
        keys: impl Iterator<Item = &'a [(u32, u16)]> + Clone,
        asked: bool,
        is_stemmed: impl Fn(u32) -> bool,
    ) -> &[u32] {
        let Self {
            postings,
            of_term,
            terms,
            ends,
        } = self;
        terms.clear();
        for &(term, _) in keys.clone().flatten() {
            let count = &mut of_term[term as usize];
            if *count == 0 {
                terms.push(term);
            }
            *count += 1;
        }
        postings.feeds.push(number(postings.begins.len()));
        if !asked {
            for &term in &*terms {
                of_term[term as usize] = 0;
            }
            return terms;
        }
        let buckets = terms.len().div_ceil(RUNS_A_BUCKET);
        ends.clear();
        ends.resize(buckets, 0);
        for &term in &*terms {
            ends[place(term, buckets)] += 1 + of_term[term as usize];
        }
        let mut end = number(postings.buckets.len());
        for length in &mut *ends {
            postings.begins.push(end);
            end += std::mem::replace(length, end);
        }
        postings.buckets.resize(end as usize, 0);
        for &term in &*terms {
            let (at, count) = (&mut ends[place(term, buckets)], &mut of_term[term as usize]);
            let stemmed = u32::from(is_stemmed(term));
            postings.buckets[*at as usize] = (((tag(term) << 1) | stemmed) << COUNT_BITS) | *count;
            let begin = *at + 1;
            *at = begin + *count;
            *count = begin;
        }
        for (watch, key) in (0_u32..).zip(keys) {
            for &(term, parts) in key {
                let next = &mut of_term[term as usize];
                postings.buckets[*next as usize] = (watch << PARTS_BITS) | u32::from(parts);
                *next += 1;
            }
        }
        for &term in &*terms {
            of_term[term as usize] = 0;
        }
        terms
    }

    pub(super) fn finish(self) -> Postings {
        let mut postings = self.postings;
        postings.feeds.push(number(postings.begins.len()));
        postings.begins.push(number(postings.buckets.len()));
        postings.feeds.shrink_to_fit();
        postings.begins.shrink_to_fit();
        postings.buckets.shrink_to_fit();
        postings
    }
}

#[inline]
fn mixed(term: u32) -> u64 {
    u64::from(term).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// In which of so many buckets the term is.
#[inline]
fn place(term: u32, buckets: usize) -> usize {
    let share = (mixed(term) >> 32) * buckets as u64;
    (share >> 32) as usize
}

#[inline]
fn tag(term: u32) -> u32 {
    (mixed(term) >> 10 & ((1 << TAG_BITS) - 1)) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn keys(watches: u32, terms: u32) -> Vec<Vec<(u32, u16)>> {
        let key = |watch: u32| {
            let has = move |term: &u32| (watch * 31 + term * 17) % 7 < 2 || *term == 3;
            let terms = (0..terms).filter(has);
            terms.map(move |term| (term, u16::try_from((watch + term) % 4_096).unwrap()))
        };
        (0..watches).map(|watch| key(watch).collect()).collect()
    }

    fn slices(keys: &[Vec<(u32, u16)>]) -> impl Iterator<Item = &[(u32, u16)]> + Clone {
        keys.iter().map(Vec::as_slice)
    }

    #[test]
    fn each_feed_has_its_own_postings_of_each_term() {
        const TERMS: u32 = 500;
        let feeds = [
            (keys(9, 40), true),
            (keys(0, 0), true),
            (keys(5, TERMS), false),
            (keys(300, TERMS), true),
            (keys(1, 1), true),
        ];
        let mut builder = PostingsBuilder::new(TERMS as usize);
        for (keys, asked) in &feeds {
            let terms = builder.push(slices(keys), *asked, |term| term % 2 == 1);
            let expected: BTreeSet<u32> = keys.iter().flatten().map(|&(term, _)| term).collect();
            assert_eq!(terms.len(), expected.len());
            assert_eq!(terms.iter().copied().collect::<BTreeSet<_>>(), expected);
        }
        let postings = builder.finish();
        for (place, (keys, asked)) in feeds.iter().enumerate() {
            if !asked {
                continue;
            }
            let of_feed = postings.of_feed(place);
            for term in 0..TERMS {
                let bucket = of_feed.bucket(term);
                let mut found = Vec::new();
                for run in of_feed.runs(bucket, term) {
                    assert_eq!(run.is_stemmed(), term % 2 == 1);
                    found.extend(run.once());
                }
                let expected = keys.iter().enumerate().flat_map(|(watch, key)| {
                    let own = key.iter().filter(move |(one, _)| *one == term);
                    own.map(move |&(_, parts)| (watch, parts))
                });
                assert_eq!(found, expected.collect::<Vec<_>>(), "{place} {term}");
            }
        }
    }

    #[test]
    fn what_counts_often_brings_more_and_never_less_than_it_should() {
        let mut builder = PostingsBuilder::new(3);
        let key = [(0, 100), (1, ENOUGH), (2, ENOUGH - 1)];
        builder.push([key.as_slice()].into_iter(), true, |_| true);
        let postings = builder.finish();
        let of_feed = postings.of_feed(0);
        let brought = |term, saturated| {
            let runs = of_feed.runs(of_feed.bucket(term), term);
            let brought = runs.flat_map(|run| run.times(saturated));
            brought.map(|(_, parts)| parts).max().unwrap()
        };
        assert!((150..153).contains(&brought(0, 1.5)));
        assert_eq!(brought(1, 0.5), PASS);
        assert!(brought(2, 3.0) >= PASS);
    }
}
