//! Postings: for each term of a feed, the plans with the term in their key, and its contribution.
//!
//! The terms of each feed are spread over buckets of [`RUNS_A_BUCKET`] runs on average. A run has a header (a part of
//! the term's hash, whether the term is stemmed, the number of postings) and its postings. So reading the postings of a
//! term takes two reads beyond the cache: the start of the bucket, and the bucket. Reads for different terms do not
//! wait for each other. Memory: 4 bytes per posting, 4 per term of a feed, and a little overhead.
//!
//! Two terms of one bucket with the same part of the hash (one pair in eight thousand) are confused. Their plans are
//! then evaluated in vain, but none is left out.

use std::ops::Range;

use super::{key::ENOUGH, number::number};

const PARTS_BITS: u32 = 12;
/// Number of watches that a posting can address.
const WATCHES: usize = 1 << (u32::BITS - PARTS_BITS);
const COUNT_BITS: u32 = 18;
const TAG_BITS: u32 = u32::BITS - 1 - COUNT_BITS;
/// Maximum number of watches of a feed: more would not fit in a run.
pub(super) const MAX_WATCHES: usize = 1 << (COUNT_BITS - 1);
const _: () = assert!(MAX_WATCHES <= WATCHES);

const RUNS_A_BUCKET: usize = 2;
/// 32-bit words in a cache line.
const LINE: u32 = 16;

/// A frequency of 1, in 256ths.
const ONCE: u32 = 256;

#[derive(Debug, Default)]
pub(super) struct Postings {
    /// First bucket of each feed, and the end of the last feed's buckets.
    feeds: Vec<u32>,
    /// Start of each bucket, and the end of the last one.
    begins: Vec<u32>,
    buckets: Vec<u32>,
}

/// Postings of one feed.
#[derive(Clone, Copy)]
pub(super) struct OfFeed<'a> {
    begins: &'a [u32],
    buckets: &'a [u32],
}

/// Postings of a term.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<'a> {
    postings: &'a [u32],
    stemmed: bool,
}

impl Postings {
    /// Returns the postings of the feed with the number `place`.
    pub(super) fn of_feed(&self, place: usize) -> OfFeed<'_> {
        let buckets = self.feeds[place] as usize..self.feeds[place + 1] as usize;
        OfFeed {
            begins: &self.begins[buckets.start..=buckets.end],
            buckets: &self.buckets,
        }
    }

    /// Returns the memory used, in bytes.
    pub(super) fn memory(&self) -> usize {
        let lists = [&self.feeds, &self.begins, &self.buckets];
        lists.iter().map(|list| list.capacity()).sum::<usize>() * size_of::<u32>()
    }
}

impl<'a> OfFeed<'a> {
    /// Returns the bucket of a term. Reads where it begins.
    #[inline]
    pub(super) fn bucket(self, term: u32) -> Range<u32> {
        let buckets = self.begins.len() - 1;
        if buckets == 0 {
            return 0..0;
        }
        let at = place(term, buckets);
        self.begins[at]..self.begins[at + 1]
    }

    /// Reads the start of a bucket and one cache line further, so that most of it is cached when it is searched.
    #[inline]
    pub(super) fn touch(self, bucket: &Range<u32>) -> u32 {
        let behind = (bucket.start + LINE).min(bucket.end - 1);
        self.buckets[bucket.start as usize] ^ self.buckets[behind as usize]
    }

    /// Returns the postings of the term in the bucket.
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
    /// Returns whether the number of occurrences of the term matters.
    pub(super) fn is_stemmed(self) -> bool {
        self.stemmed
    }

    /// Returns watches, numbered from 0 within their feed, and the term's contribution to each, regardless of its
    /// frequency; `u16::MAX` for a term that is sufficient alone.
    #[inline]
    pub(super) fn once(self) -> impl Iterator<Item = (usize, u16)> + 'a {
        self.parts().map(|(watch, parts)| {
            let brings = if parts == ENOUGH { u16::MAX } else { parts };
            (watch, brings)
        })
    }

    #[inline]
    fn parts(self) -> impl Iterator<Item = (usize, u16)> + 'a {
        self.postings.iter().map(|&posting| {
            let parts = (posting & ((1 << PARTS_BITS) - 1)) as u16;
            ((posting >> PARTS_BITS) as usize, parts)
        })
    }

    /// Works like [`Self::once`], for a term with this saturated frequency, which is 0 to 3.
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
            if parts == ENOUGH { u16::MAX } else { brought }
        };
        self.parts()
            .map(move |(watch, parts)| (watch, brings(parts)))
    }
}

/// Collects postings, feed by feed.
#[derive(Default)]
pub(super) struct PostingsBuilder {
    postings: Postings,
    /// For each term: the number of watches of the current feed that have it, then the position of its next posting.
    of_term: Vec<u32>,
    /// The terms of the current feed.
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

    /// Adds a feed with the keys of its watches: terms and contributions, each term once in a key. No postings are
    /// stored if no one will query the feed. Returns all terms of the keys, each once.
    pub(super) fn push<'a>(
        &mut self,
        keys: impl Iterator<Item = &'a [(u32, u16)]> + Clone,
        is_queried: bool,
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
        if !is_queried {
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

/// Returns which of this many buckets contains the term.
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
    use crate::index::key::PASS;

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
    fn postings_are_separate_for_each_feed() {
        const TERMS: u32 = 500;
        let feeds = [
            (keys(9, 40), true),
            (keys(0, 0), true),
            (keys(5, TERMS), false),
            (keys(300, TERMS), true),
            (keys(1, 1), true),
        ];
        let mut builder = PostingsBuilder::new(TERMS as usize);
        for (keys, is_queried) in &feeds {
            let terms = builder.push(slices(keys), *is_queried, |term| term % 2 == 1);
            let expected: BTreeSet<u32> = keys.iter().flatten().map(|&(term, _)| term).collect();
            assert_eq!(terms.len(), expected.len());
            assert_eq!(terms.iter().copied().collect::<BTreeSet<_>>(), expected);
        }
        let postings = builder.finish();
        for (place, (keys, is_queried)) in feeds.iter().enumerate() {
            if !is_queried {
                continue;
            }
            let of_feed = postings.of_feed(place);
            for term in 0..TERMS {
                let bucket = of_feed.bucket(term);
                let mut found = Vec::new();
                for run in of_feed.runs(bucket, term) {
                    assert_eq!(run.is_stemmed(), term % 2 == 1);
                    found.extend(run.parts());
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
    fn posting_weights_are_rounded_up() {
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
        assert_eq!(brought(1, 0.5), u16::MAX);
        assert!(brought(2, 3.0) >= PASS);
    }
}
