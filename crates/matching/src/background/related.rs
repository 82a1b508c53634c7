//! Words that ordinary posts about a plan's topic contain: pseudo-relevance feedback.
//!
//! A page names its subject in the company's words; people write about it in others. The posts that score best on
//! the page's terms contain both.

use std::collections::{BTreeSet, HashMap};

use super::{Background, number};
use crate::plan::{self, Plan};

/// Number of posts that are assumed to be about the topic.
const BEST_POSTS: usize = 60;
/// Minimum lift: a related word is at least e times more frequent in these posts than in all posts.
const MIN_LIFT: f64 = 1.0;
/// Number of posts of each kind added to every word as a prior.
const PRIOR: f64 = 0.5;

impl Background {
    /// Returns the words that posts about the plan's topic contain more often than others, the best first. Leaves out
    /// words of the plan's names.
    pub fn related_terms(&self, plan: &Plan, count: usize) -> Vec<String> {
        let best: BTreeSet<u16> = self.best_posts(plan).into_iter().collect();
        let names: BTreeSet<Box<str>> = stems_of_names(plan);
        // By stem: posts with it, and how many of these are among the best.
        let mut frequencies: HashMap<&str, (usize, usize)> = HashMap::new();
        for (stem, word) in &self.words {
            let is_word = word.shortest.chars().filter(|c| c.is_alphabetic()).count() > 1;
            if !is_word || names.contains(stem) {
                continue;
            }
            let mut posts: Vec<u16> = word.postings.iter().map(|posting| posting.post).collect();
            posts.dedup();
            let hits = posts.iter().filter(|post| best.contains(post)).count();
            frequencies.insert(stem, (posts.len(), hits));
        }
        let (mut all, mut hits) = (0, 0);
        for (of_all, of_best) in frequencies.values() {
            all += of_all;
            hits += of_best;
        }
        if hits == 0 {
            return Vec::new();
        }
        let share = number(hits) / number(all);
        let mut words: Vec<(f64, &str)> = frequencies
            .into_iter()
            .filter_map(|(stem, (posts, hits))| {
                let expected = (number(posts) + 1.0) * share;
                let lift = ((number(hits) + PRIOR) / (expected + PRIOR)).ln();
                let word = self.words.get(stem)?;
                (lift >= MIN_LIFT).then(|| (lift.min(3.0) * number(hits).sqrt(), &*word.shortest))
            })
            .collect();
        words.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        words.truncate(count);
        words.into_iter().map(|(_, word)| word.to_owned()).collect()
    }

    /// Returns the posts that are most about the topic for their length.
    fn best_posts(&self, plan: &Plan) -> Vec<u16> {
        let topics = self.topics(plan);
        let mut posts: Vec<(f64, u16)> = (0..)
            .zip(topics.iter().zip(&self.lengths))
            .filter(|(_, (topic, _))| **topic > 0.0)
            .map(|(post, (topic, length))| (topic / (f64::from(*length) + 30.0).sqrt(), post))
            .collect();
        posts.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        posts.truncate(BEST_POSTS);
        posts.into_iter().map(|(_, post)| post).collect()
    }
}

fn stems_of_names(plan: &Plan) -> BTreeSet<Box<str>> {
    let spellings = plan.names.iter().flat_map(|name| &name.spellings);
    let readings = spellings.filter_map(|spelling| plan::stemmed(&spelling.text));
    readings
        .flat_map(|readings| readings.phrases().to_vec())
        .flat_map(|phrase| phrase.words)
        .collect()
}
