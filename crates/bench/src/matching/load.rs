//! Generates plans and posts for the bench from a seed, without external data: the same on every machine.
//!
//! Words are distributed as in natural language (Zipf's law over 60,000 words, English words first). There are 600
//! topics of 250 words and 80 word pairs. A post is about one of them, and takes every seventh word from it. A plan's
//! 60 terms come from two topics and, in part, from all words. So plans find posts of their topics, as real ones do,
//! and one in some thousand matches.
//!
//! **Typical**: posts of 650 bytes; plans with weights, thresholds, groups, exclusions, and one to three of forty
//! feeds, where most plans watch the same few. **Hot**: the worst case for the index: every plan watches the one feed
//! and takes its terms from the same few hundred commonest ones, and the posts only consist of these.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    FeedName, Focus, Instructions,
    instructions::{NameKind, Term, WatchedName},
};
use matching::{Background, Plan};

const WORDS: usize = 60_000;
const TOPICS: u64 = 600;
const TOPIC_WORDS: usize = 250;
const TOPIC_PAIRS: usize = 80;
const FEEDS: u64 = 40;
/// Words with a lower rank are stop words, which no plan contains.
const SAYS_NOTHING: u64 = 150;
/// Number of terms of a plan.
const TERMS: usize = 60;
/// Number of posts that define the topic scale of plans with a focus.
const BACKGROUND_POSTS: u64 = 4_000;
const BACKGROUND_PLANS: u64 = 50;
const POST_BYTES: usize = 584;
const TITLE_BYTES: usize = 60;
/// Number of terms that all hot plans share.
const HOT_TERMS: u64 = 400;

const ENGLISH: &str = "the to a and i of in is it for that you on my with this be have but are not was if so as at or \
    just me can what like from do an all your we there they out get about would up one more when has by how will no \
    know any some been really good think want than time who im its don't people use new am he only had because them \
    make other now which very even their much then see also should could need were too way work got why go any into \
    being where over after first our most still here these something going looking his back never please anyone best";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Typical,
    /// The same with a focus and names, so that classifiers and lexicons are needed.
    Focused,
    Hot,
}

pub(crate) struct Post {
    pub(crate) title: String,
    pub(crate) text: String,
    pub(crate) feed: FeedName,
}

pub(crate) struct Load {
    words: Vec<String>,
    topics: Vec<Topic>,
    feeds: Vec<FeedName>,
    kind: Kind,
    /// Title and text of real posts, used instead of generated ones.
    real: Vec<(String, String)>,
    /// Topic scores of ordinary posts for plans with a focus, as the compiler sets them.
    background_scores: Option<[f64; 3]>,
}

struct Topic {
    words: Vec<usize>,
    pairs: Vec<(usize, usize)>,
}

impl Load {
    /// With real posts, plans use the words of these posts.
    pub(crate) fn new(kind: Kind, real: Vec<(String, String)>) -> Self {
        let words = words(&real);
        let mut random = Random(1);
        let topics = (0..TOPICS)
            .map(|_| {
                let mut words = BTreeSet::new();
                while words.len() < TOPIC_WORDS {
                    words.insert(random.content_word());
                }
                let words: Vec<usize> = words.into_iter().collect();
                let pair = |_| {
                    (
                        words[random.skewed(words.len())],
                        words[random.skewed(words.len())],
                    )
                };
                let pairs = (0..TOPIC_PAIRS).map(pair).collect();
                Topic { words, pairs }
            })
            .collect();
        let feeds = (0..FEEDS)
            .filter_map(|feed| format!("forum:c/{feed}").parse().ok())
            .collect();
        let mut load = Self {
            words,
            topics,
            feeds,
            kind,
            real,
            background_scores: None,
        };
        if kind == Kind::Focused {
            load.background_scores = load.usual_scores();
        }
        load
    }

    /// Returns the mean of the topic scores of some plans on posts of the load.
    fn usual_scores(&self) -> Option<[f64; 3]> {
        let posts: Vec<Post> = (0..BACKGROUND_POSTS)
            .map(|number| self.post(number))
            .collect();
        let posts = posts
            .iter()
            .map(|post| (post.title.as_str(), post.text.as_str()));
        let background = Background::new(posts);
        let mut sums = [0.0; 3];
        for number in 0..BACKGROUND_PLANS {
            let plan = Plan::compile(&self.instructions(number)).ok()?;
            for (sum, score) in sums.iter_mut().zip(background.topic_scores(&plan)) {
                *sum += score;
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "a small constant")]
        let mean = |sum: f64| (sum / BACKGROUND_PLANS as f64 * 1e3).round() / 1e3;
        Some(sums.map(mean))
    }

    /// Returns the instructions of a number, regardless of previous calls.
    pub(crate) fn instructions(&self, number: u64) -> Instructions {
        let mut random = Random(number.wrapping_mul(2).wrapping_add(0x00a1_1ce5));
        if self.kind == Kind::Hot {
            return self.hot_instructions(&mut random);
        }
        let topics = [random.below(TOPICS), random.below(TOPICS)];
        let mut texts = BTreeSet::new();
        let mut include = Vec::new();
        while include.len() < TERMS {
            let topic = &self.topics[usize_of(topics[usize::from(random.one_in(3))])];
            let (text, rank) = if random.one_in(5) {
                (self.word(random.content_word()), 0)
            } else if random.one_in(4) {
                let (one, other) = topic.pairs[random.skewed(topic.pairs.len())];
                (format!("{} {}", self.word(one), self.word(other)), WORDS)
            } else {
                let word = topic.words[random.skewed(topic.words.len())];
                (self.word(word), word)
            };
            if texts.insert(text.clone()) {
                // Rare words have higher weights, with some variation.
                let rarity = f64::from(u32::try_from(rank).unwrap_or_default() + 50).ln() / 11.0;
                let weight = rarity * (0.4 + 0.8 * random.part());
                include.push(Term {
                    text,
                    weight: (weight * 1_000.0).round() / 1_000.0,
                });
            }
        }
        let some = |random: &mut Random, count: u64| -> Vec<String> {
            let topic = &self.topics[usize_of(topics[0])];
            (0..count)
                .map(|_| self.word(topic.words[random.skewed(topic.words.len())]))
                .collect()
        };
        let require = if random.one_in(3) {
            let count = 3 + random.below(6);
            vec![some(&mut random, count)]
        } else {
            Vec::new()
        };
        let exclude = if random.one_in(3) {
            let count = 1 + random.below(4);
            (0..count)
                .map(|_| self.word(random.content_word()))
                .collect()
        } else {
            Vec::new()
        };
        let (focus, names, threshold) = if self.kind == Kind::Focused {
            let focus = Focus::ALL[usize_of(random.below(3))];
            let name = |kind| WatchedName {
                text: self.word(WORDS - 1 - usize_of(number % 20_000)),
                kind,
                aliases: Vec::new(),
                case_sensitive: false,
                context: Vec::new(),
                on_topic_percent: None,
                ordinary_posts: None,
            };
            (
                Some(focus),
                vec![name(NameKind::Own), name(NameKind::Watched)],
                0.5,
            )
        } else {
            (
                None,
                Vec::new(),
                4.2 + (random.part() * 10.0).round() / 10.0,
            )
        };
        Instructions {
            feeds: self.some_feeds(&mut random),
            require,
            include,
            names,
            exclude,
            focus,
            threshold: Some(threshold),
            background_scores: self.background_scores,
            ..Instructions::default()
        }
    }

    /// All plans are alike: they require more of the posts' common terms than a post contains.
    fn hot_instructions(&self, random: &mut Random) -> Instructions {
        let mut terms = BTreeSet::new();
        while terms.len() < TERMS {
            terms.insert(self.word(usize_of(SAYS_NOTHING + random.below(HOT_TERMS))));
        }
        Instructions {
            feeds: vec![self.feeds[0].clone()],
            include: terms
                .into_iter()
                .map(|text| Term { text, weight: 1.0 })
                .collect(),
            threshold: Some(28.0),
            ..Instructions::default()
        }
    }

    pub(crate) fn post(&self, number: u64) -> Post {
        let mut random = Random(number.wrapping_mul(2).wrapping_add(0xbeef));
        let topic = &self.topics[usize_of(random.below(TOPICS))];
        let (title, text) = if self.real.is_empty() {
            (
                self.prose(TITLE_BYTES, topic, &mut random),
                self.prose(POST_BYTES, topic, &mut random),
            )
        } else {
            self.real[usize_of(number % self.real.len() as u64)].clone()
        };
        let feed = if self.kind == Kind::Hot {
            self.feeds[0].clone()
        } else {
            self.feeds[random.skewed(self.feeds.len())].clone()
        };
        Post { title, text, feed }
    }

    fn some_feeds(&self, random: &mut Random) -> Vec<FeedName> {
        let count = 1 + random.below(3);
        let feeds: BTreeSet<usize> = (0..count)
            .map(|_| random.skewed(self.feeds.len()))
            .collect();
        feeds
            .into_iter()
            .map(|feed| self.feeds[feed].clone())
            .collect()
    }

    /// Writes prose like a person: sentences, capitals, commas, occasional marks.
    fn prose(&self, bytes: usize, topic: &Topic, random: &mut Random) -> String {
        let mut text = String::with_capacity(bytes + 32);
        let mut sentence = 0;
        while text.len() < bytes {
            let mut word = if self.kind == Kind::Hot {
                self.word(usize_of(SAYS_NOTHING + random.below(HOT_TERMS)))
            } else if random.one_in(9) {
                self.word(topic.words[random.skewed(topic.words.len())])
            } else if random.one_in(30) {
                let (one, other) = topic.pairs[random.skewed(topic.pairs.len())];
                format!("{} {}", self.word(one), self.word(other))
            } else {
                self.word(random.zipf())
            };
            if sentence == 0 || random.one_in(25) {
                word[..1].make_ascii_uppercase();
            }
            text.push_str(&word);
            sentence += 1;
            let gap = match random.below(100) {
                0..8 if sentence > 4 => {
                    sentence = 0;
                    ". "
                }
                8..13 => ", ",
                13 => "'s ",
                14 => "-",
                15 => " (",
                16 if sentence > 4 => {
                    sentence = 0;
                    "?\n\n"
                }
                17 => ": ",
                _ => " ",
            };
            text.push_str(gap);
        }
        text
    }

    fn word(&self, rank: usize) -> String {
        self.words[rank].clone()
    }
}

/// Returns words by rank; rarer words are longer. Words of real posts come first, if there are any.
fn words(real: &[(String, String)]) -> Vec<String> {
    let syllables: Vec<String> = "b c d f g h l m n p r s t v w k st tr pl ch"
        .split(' ')
        .flat_map(|onset| {
            ["a", "e", "i", "o", "u", "an", "er", "il", "on"].map(|end| format!("{onset}{end}"))
        })
        .collect();
    let mut known = BTreeSet::new();
    let mut words: Vec<String> = Vec::with_capacity(WORDS);
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let texts = real.iter().flat_map(|(title, text)| [title, text]);
    for word in texts.flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric())) {
        if word.len() > 1 {
            *counts.entry(word.to_ascii_lowercase()).or_default() += 1;
        }
    }
    let mut counts: Vec<(String, u32)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let real = counts.iter().take(WORDS).map(|(word, _)| word.as_str());
    for word in real.chain(ENGLISH.split_whitespace()).take(WORDS) {
        if known.insert(word.to_owned()) {
            words.push(word.to_owned());
        }
    }
    let mut random = Random(7);
    while words.len() < WORDS {
        let length = 2 + usize::from(words.len() > 2_000) + usize::from(random.one_in(3));
        let word: String = (0..length)
            .map(|_| syllables[usize_of(random.below(syllables.len() as u64))].as_str())
            .collect();
        if known.insert(word.clone()) {
            words.push(word);
        }
    }
    words
}

/// Pseudo-random numbers: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn part(&mut self) -> f64 {
        f64::from(u32::try_from(self.next() >> 32).unwrap_or_default()) / f64::from(u32::MAX)
    }

    /// Returns a rank that follows Zipf's law.
    fn zipf(&mut self) -> usize {
        self.rank(2.7)
    }

    fn content_word(&mut self) -> usize {
        loop {
            let rank = self.rank(300.0);
            if rank >= usize_of(SAYS_NOTHING) {
                return rank;
            }
        }
    }

    /// Returns rank `r` with a probability proportional to `1 / (r + shift)`.
    fn rank(&mut self, shift: f64) -> usize {
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let span = ((WORDS as f64 + shift) / shift).ln();
        let rank = shift * ((self.part() * span).exp() - 1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at least 0, and below WORDS"
        )]
        let rank = rank as usize;
        rank.min(WORDS - 1)
    }

    /// Returns one of `count`, with a preference for low numbers.
    fn skewed(&mut self, count: usize) -> usize {
        let part = self.part() * self.part();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "between 0 and a small count"
        )]
        let at = (part * count as f64) as usize;
        at.min(count - 1)
    }
}

/// Converts a count of items in memory.
#[expect(clippy::cast_possible_truncation, reason = "small numbers")]
fn usize_of(number: u64) -> usize {
    number as usize
}
