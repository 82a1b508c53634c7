//! An index of ordinary posts, to compare a plan's topic with.
//!
//! A term that ordinary posts use together with the plan's other terms is about the subject. A term that occurs in any
//! post is an everyday word that happens to be on the page. A topic score means something only in comparison with those
//! of ordinary posts. Both are computed when a plan is compiled, not when a post is decided.

mod related;

use std::collections::HashMap;

use domain::instructions::Term;

use crate::{
    model,
    phrase::Phrase,
    plan::{self, Name, ON_TOPIC_PRIOR, Plan, Rule},
    text::{self, Kind},
};

/// Ordinary posts, indexed by the stems of their words.
#[derive(Debug, Default)]
pub struct Background {
    words: HashMap<Box<str>, Word>,
    /// Number of words of each post.
    lengths: Vec<u32>,
}

/// Posts that contain the words of one stem.
#[derive(Debug)]
struct Word {
    /// The shortest word of the stem.
    shortest: Box<str>,
    postings: Vec<Posting>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Posting {
    post: u16,
    place: u16,
    title: bool,
    capital: bool,
}

/// Shorter posts say too little about which words go together.
const MIN_WORDS: u32 = 15;
const LIFT_PASSES: usize = 2;
/// Number of posts of average lift added to each term, so that one post does not decide about a rare term.
const LIFT_PRIOR: f64 = 3.0;
const LIFT_BOUNDS: (f64, f64) = (0.2, 2.0);
const LIFT_POWER: f64 = 1.0;
/// Number of posts that the prior counts as.
const ON_TOPIC_STRENGTH: f64 = 3.0;
/// A plan gets the topic scores of these shares of ordinary posts.
const SHARES: [f64; 3] = [0.1, 0.01, 0.001];

/// How ordinary posts use a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameUsage {
    /// Percentage of the posts with the name that are about the plan's topic.
    pub on_topic_percent: u8,
    /// Number of posts with the name, per 10,000.
    pub per_10_000: u16,
}

impl Default for NameUsage {
    fn default() -> Self {
        Self {
            on_topic_percent: ON_TOPIC_PRIOR,
            per_10_000: 0,
        }
    }
}

impl Background {
    /// Indexes posts, given as title and text; at most 65,535.
    pub fn new<'a>(posts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut background = Self::default();
        for (nth, (title, text)) in (0..=u16::MAX).zip(posts) {
            background.add(nth, title, text);
        }
        background
    }

    fn add(&mut self, post: u16, title: &str, text: &str) {
        let source = format!("{title}\n\n{text}");
        let mut length = 0;
        for token in text::tokens(&source) {
            length += u32::from(!matches!(token.kind, Kind::Joined | Kind::Marked));
            let Ok(place) = u16::try_from(token.place) else {
                break;
            };
            let posting = Posting {
                post,
                place,
                title: token.start < title.len(),
                capital: token.raw.chars().next().is_some_and(char::is_uppercase),
            };
            let stem = text::stem(&token.text);
            match self.words.get_mut(stem.as_ref()) {
                Some(word) => {
                    word.postings.push(posting);
                    if token.text.len() < word.shortest.len() {
                        word.shortest = token.text.as_ref().into();
                    }
                }
                None => {
                    let word = Word {
                        shortest: token.text.as_ref().into(),
                        postings: vec![posting],
                    };
                    self.words.insert(stem.into(), word);
                }
            }
        }
        self.lengths.push(length);
    }

    /// Returns the best terms. A term that ordinary posts do not use together with the others gets a lower weight.
    pub fn reweigh(&self, candidates: &[Term], count: usize) -> Vec<Term> {
        let mut terms = candidates.to_vec();
        for _ in 0..LIFT_PASSES {
            let Some(lifts) = self.lifts(&terms) else {
                break;
            };
            for ((term, given), lift) in terms.iter_mut().zip(candidates).zip(lifts) {
                let (low, high) = LIFT_BOUNDS;
                term.weight = given.weight * lift.clamp(low, high).powf(LIFT_POWER);
            }
        }
        for term in &mut terms {
            term.weight = (term.weight * 1e3).round() / 1e3;
        }
        terms.retain(|term| term.weight > 0.0);
        terms.sort_by(|a, b| {
            b.weight
                .total_cmp(&a.weight)
                .then_with(|| a.text.cmp(&b.text))
        });
        terms.truncate(count);
        terms
    }

    /// Returns how many of the other terms occur in the posts that contain a term, where the average is 1.
    fn lifts(&self, terms: &[Term]) -> Option<Vec<f64>> {
        let compiled: Vec<_> = terms.iter().map(|term| plan::stemmed(&term.text)).collect();
        let words: Vec<Vec<&str>> = compiled
            .iter()
            .map(|readings| {
                let phrases = readings.iter().flat_map(|readings| readings.phrases());
                phrases
                    .flat_map(|p| p.words.iter().map(AsRef::as_ref))
                    .collect()
            })
            .collect();
        let mut by_post: HashMap<u16, Vec<usize>> = HashMap::new();
        for (at, readings) in compiled.iter().enumerate() {
            let mut posts: Vec<u16> = readings
                .iter()
                .flat_map(|readings| readings.phrases())
                .flat_map(|phrase| self.find(phrase))
                .map(|posting| posting.post)
                .collect();
            posts.dedup();
            for post in posts {
                let terms = by_post.entry(post).or_default();
                if terms.last() != Some(&at) {
                    terms.push(at);
                }
            }
        }
        let mut sums = vec![(0.0, 0.0); terms.len()];
        let mut posts: Vec<(&u16, &Vec<usize>)> = by_post.iter().collect();
        // A fixed order gives the same sum on every machine.
        posts.sort_unstable();
        for (post, held) in posts {
            let length = self.lengths[usize::from(*post)];
            if length < MIN_WORDS {
                continue;
            }
            let norm = (f64::from(length) + 60.0).sqrt();
            for &at in held {
                let others = held.iter().filter(|&&other| {
                    other != at && !words[other].iter().any(|word| words[at].contains(word))
                });
                let weight: f64 = others.map(|&other| terms[other].weight).sum();
                sums[at].0 += weight / norm;
                sums[at].1 += 1.0;
            }
        }
        let seen: Vec<f64> = sums
            .iter()
            .filter(|s| s.1 > 0.0)
            .map(|s| s.0 / s.1)
            .collect();
        let mean = seen.iter().sum::<f64>() / number(seen.len());
        (mean > 0.0).then(|| {
            let lift =
                |(sum, posts): &(f64, f64)| (sum + LIFT_PRIOR * mean) / (posts + LIFT_PRIOR) / mean;
            sums.iter().map(lift).collect()
        })
    }

    /// Returns the topic scores that one in ten, in a hundred and in a thousand ordinary posts reach.
    pub fn topic_scores(&self, plan: &Plan) -> [f64; 3] {
        let mut topics = self.topics(plan);
        topics.sort_by(|a, b| b.total_cmp(a));
        SHARES.map(|share| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of a small count"
            )]
            let rank = (share * number(topics.len())) as usize;
            let score = topics.get(rank).copied().unwrap_or_default();
            (score * 1e3).round() / 1e3
        })
    }

    /// Returns how ordinary posts use each name of the plan.
    pub fn name_usages(&self, plan: &Plan) -> Vec<NameUsage> {
        let Rule::Focus { scale, .. } = plan.rule else {
            return vec![NameUsage::default(); plan.names.len()];
        };
        let topics = self.topics(plan);
        let usage = |name: &Name| {
            let mut posts: Vec<u16> = Vec::new();
            for spelling in &name.spellings {
                let stems = plan::stemmed(&spelling.text);
                for phrase in stems.iter().flat_map(|readings| readings.phrases()) {
                    let found = self.find(phrase);
                    let found = found.filter(|p| p.capital || spelling.cased.is_none());
                    posts.extend(found.map(|posting| posting.post));
                }
            }
            posts.sort_unstable();
            posts.dedup();
            let about = |post: &&u16| scale.surprise(topics[usize::from(**post)]) >= 1.0;
            let on_topic = number(posts.iter().filter(about).count());
            let prior = f64::from(ON_TOPIC_PRIOR) / 100.0 * ON_TOPIC_STRENGTH;
            let share = (on_topic + prior) / (number(posts.len()) + ON_TOPIC_STRENGTH);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "0 to 100, and to 10,000"
            )]
            let (on_topic_percent, per_10_000) = (
                (share * 100.0).round() as u8,
                (number(posts.len()) / number(self.lengths.len().max(1)) * 1e4).round() as u16,
            );
            NameUsage {
                on_topic_percent,
                per_10_000,
            }
        };
        plan.names.iter().map(usage).collect()
    }

    fn topics(&self, plan: &Plan) -> Vec<f64> {
        let mut topics = vec![0.0; self.lengths.len()];
        for term in plan.include.iter().filter(|term| term.weight > 0.0) {
            let mut frequencies: HashMap<u16, f64> = HashMap::new();
            for phrase in term.readings.phrases() {
                let mut counts: HashMap<u16, (u32, u32)> = HashMap::new();
                for posting in self.find(phrase) {
                    let count = counts.entry(posting.post).or_default();
                    if posting.title {
                        count.0 += 1;
                    } else {
                        count.1 += 1;
                    }
                }
                for (post, (title, text)) in counts {
                    let frequency = frequencies.entry(post).or_default();
                    *frequency = frequency.max(model::frequency(title, text));
                }
            }
            for (post, frequency) in frequencies {
                let post = usize::from(post);
                topics[post] += term.weight * model::saturated(frequency, self.lengths[post]);
            }
        }
        topics
    }

    fn find<'a>(&'a self, phrase: &'a Phrase) -> impl Iterator<Item = Posting> + 'a {
        let (first, rest) = phrase
            .words
            .split_first()
            .map_or((None, &[][..]), |(f, r)| (Some(f), r));
        let of = |word: &str| {
            let word = self.words.get(word);
            word.map_or(&[][..], |word| word.postings.as_slice())
        };
        let starts = first.map_or(&[][..], |word| of(word)).iter().copied();
        starts.filter(move |start| {
            (1..).zip(rest).all(|(offset, word)| {
                let place = start.place.saturating_add(offset);
                of(word)
                    .binary_search_by_key(&(start.post, place), |p| (p.post, p.place))
                    .is_ok()
            })
        })
    }
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
