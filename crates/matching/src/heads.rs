//! Three linear classifiers of a post's intent: buy, compare, complain.
//!
//! Each is a sum of weights of the words and word pairs that occur, by hash. Those of the title, or of the opening
//! where there is no title, count again in separate buckets. A post is classified once, regardless of the number of
//! plans, and only when a plan with a focus needs it: one pass over its first words, a few microseconds.
//!
//! The classifiers know only English. For a post in another language they answer what they answer for most posts, and
//! the lexicon decides.

mod english;
mod words;

use std::{
    cell::Cell,
    sync::{LazyLock, OnceLock},
};

use domain::Focus;
use english::English;
use words::words;

use crate::model_file::{BUCKET_BITS, Head, ModelFile};

const BUCKETS: usize = 1 << BUCKET_BITS;
/// Maximum number of words read; later words say little about what the author wants.
const MAX_WORDS: usize = 160;
/// Number of words that open a post without a title.
const OPENING_WORDS: usize = 20;

/// A classifier's answer is limited to these bounds, so that none decides alone. Answers are counted from the lowest.
const LOWEST: f64 = -4.0;
const HIGHEST: f64 = 2.0;
/// The largest answer that [`answer`] returns.
pub(crate) const MAX_ANSWER: f64 = HIGHEST - LOWEST;
/// The answer for most posts: too little to match by topic or name alone, and the lexicon may add to it.
const UNDECIDED: f64 = 2.5;

static MODEL: OnceLock<ModelFile> = OnceLock::new();

/// Returns the model in use: the one that is compiled in, unless another was installed.
pub(crate) fn model() -> &'static ModelFile {
    // A test proves that it can be read.
    MODEL.get_or_init(|| ModelFile::parse(include_bytes!("../model/model.bin")).unwrap_or_default())
}

/// Replaces the model that is compiled in, for training; returns `false` once a post was decided.
pub fn install(model: ModelFile) -> bool {
    MODEL.set(model).is_ok()
}

impl Head {
    /// Returns the logit of the probability that the post is of the kind.
    pub fn logit(&self, features: &HeadFeatures) -> f64 {
        let weight = |bucket: &u32| self.weights.get(*bucket as usize).copied().unwrap_or(0);
        let sum: i32 = features.buckets.iter().map(|b| i32::from(weight(b))).sum();
        self.intercept + self.scale * f64::from(sum) * features.value()
    }
}

/// The features of a post that the classifiers use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadFeatures {
    /// Distinct buckets, in the order of their first occurrence.
    pub buckets: Vec<u32>,
    english: bool,
}

impl HeadFeatures {
    pub fn of(title: &str, text: &str) -> Self {
        let mut seen = Seen::default();
        let (english, _) = seen.read(title, text);
        Self {
            buckets: seen.buckets,
            english: english.verdict(),
        }
    }

    /// Returns the value of each feature: the length of a post does not make it stronger.
    pub fn value(&self) -> f64 {
        value(self.buckets.len())
    }

    /// Returns the classifier's answer within its bounds, counted from the lowest.
    pub fn answer(&self, logit: f64) -> f64 {
        answer(self.english, logit)
    }
}

fn value(buckets: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let count = buckets.max(1) as f64;
    1.0 / count.sqrt()
}

fn answer(english: bool, logit: f64) -> f64 {
    if english {
        logit.clamp(LOWEST, HIGHEST) - LOWEST
    } else {
        UNDECIDED
    }
}

/// Returns whether a text may be English, by its letters and small words; `None` where it has no small word.
pub(crate) fn is_english(text: &str) -> Option<bool> {
    let mut english = English::default();
    words(text, |word, _| {
        english.add(word);
        true
    });
    english.guess()
}

/// Returns the answers of the three classifiers, by `Focus as usize`; each equals that of its [`Head`], bit for bit.
pub(crate) fn answers(title: &str, text: &str) -> [f64; FOCUSES] {
    read(title, text).0
}

/// Returns the answers, and the result of [`is_english`] for the title and the text together; the outer option is
/// `None` where they have more words than the classifiers read.
pub(crate) fn read(title: &str, text: &str) -> ([f64; FOCUSES], Option<Option<bool>>) {
    thread_local! {
        static SEEN: Cell<Option<Box<Seen>>> = const { Cell::new(None) };
    }
    // Taken out while in use: a panic must not leave a half-used buffer behind.
    let mut seen = SEEN.take().unwrap_or_default();
    let (english, all) = seen.read(title, text);
    let mut sums = [0_i32; FOCUSES];
    for bucket in &seen.buckets {
        let weights = WEIGHTS.get(*bucket as usize).copied().unwrap_or_default();
        for (sum, weight) in sums.iter_mut().zip(weights) {
            *sum += i32::from(weight);
        }
    }
    let value = value(seen.buckets.len());
    let mut answers = [0.0; FOCUSES];
    for ((given, head), sum) in answers.iter_mut().zip(&model().heads).zip(sums) {
        *given = answer(
            english.verdict(),
            head.intercept + head.scale * f64::from(sum) * value,
        );
    }
    seen.clear();
    SEEN.set(Some(seen));
    (answers, all.then(|| english.guess()))
}

const FOCUSES: usize = Focus::ALL.len();

/// Weights of all classifiers by bucket, so that one memory access reads the three.
static WEIGHTS: LazyLock<Vec<[i8; FOCUSES]>> = LazyLock::new(|| {
    let of = |bucket: usize| {
        let mut weights = [0; FOCUSES];
        for (weight, head) in weights.iter_mut().zip(&model().heads) {
            *weight = head.weights.get(bucket).copied().unwrap_or(0);
        }
        weights
    };
    (0..BUCKETS).map(of).collect()
});

/// Set of buckets, each contained once.
struct Seen {
    bits: Vec<u64>,
    buckets: Vec<u32>,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            bits: vec![0; BUCKETS / 64],
            buckets: Vec::with_capacity(4 * MAX_WORDS),
        }
    }
}

impl Seen {
    /// Adds the words of a post. Returns the language statistics, and whether all words were read.
    fn read(&mut self, title: &str, text: &str) -> (English, bool) {
        let mut count = 0;
        let mut english = English::default();
        let mut pass = |part: &str, opening: usize, seen: &mut Self| {
            let mut before = None;
            words(part, |word, hash| {
                english.add(word);
                let body = mix(hash, 0);
                seen.add(body);
                let opens = before.is_none_or(|(at, _)| at < opening);
                let at = before.map_or(0, |(at, _)| at) + 1;
                if opens && opening > 0 {
                    seen.add(mix(hash, 1));
                }
                if let Some((_, pair)) = before {
                    let pair = mix(pair, body);
                    seen.add(pair);
                    if opens && opening > 0 {
                        seen.add(mix(pair, 1));
                    }
                }
                before = Some((at, body));
                count += 1;
                count < MAX_WORDS
            });
        };
        let titled = !title.trim().is_empty();
        pass(title, MAX_WORDS, self);
        pass(text, if titled { 0 } else { OPENING_WORDS }, self);
        (english, count < MAX_WORDS)
    }

    fn clear(&mut self) {
        for bucket in self.buckets.drain(..) {
            self.bits[bucket as usize / 64] = 0;
        }
    }

    fn add(&mut self, hash: u64) {
        let bucket = (hash >> (64 - BUCKET_BITS)) as u32;
        let bit = 1 << (bucket % 64);
        let word = &mut self.bits[bucket as usize / 64];
        if *word & bit == 0 {
            *word |= bit;
            self.buckets.push(bucket);
        }
    }
}

fn mix(a: u64, b: u64) -> u64 {
    let mixed = (a.rotate_left(23) ^ b).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

#[cfg(test)]
mod tests {
    use domain::Focus;

    use super::{HeadFeatures, UNDECIDED, answers, model};
    use crate::model_file::ModelFile;

    #[test]
    fn shipped_model_can_be_read() {
        let parsed = ModelFile::parse(include_bytes!("../model/model.bin"));
        assert_eq!(parsed.as_ref(), Some(model()));
        assert!(model().heads.iter().all(|head| head.scale > 0.0));
    }

    #[test]
    fn intents_are_distinguished() {
        let of = |text: &str| answers("", text);
        let buys = of("Can anyone recommend a good dishwasher? Looking to buy one this week.");
        let compares = of("The Corvo is way better than the Lynx, I switched and it is faster.");
        let angry = of("Worst service ever. Three weeks and still no refund, nobody answers.");
        for (focus, best) in [
            (Focus::Sales, buys),
            (Focus::Competitor, compares),
            (Focus::Crisis, angry),
        ] {
            for other in [buys, compares, angry] {
                assert!(other[focus as usize] <= best[focus as usize], "{focus:?}");
            }
        }
    }

    #[test]
    fn other_languages_get_the_neutral_answer() {
        for text in [
            "Kann jemand eine gute Maschine empfehlen? Suche etwas Kleines.",
            "Je cherche une bonne machine pour la maison, des conseils ?",
            "おすすめのエスプレッソマシンを教えてください",
            "أبحث عن آلة قهوة جيدة للمنزل",
        ] {
            assert_eq!(answers("", text), [UNDECIDED; 3], "{text}");
        }
        for text in [
            "I love it",
            "Los Angeles flight late, que sera sera, what a day for us",
        ] {
            assert_ne!(answers("", text)[2], UNDECIDED, "{text}");
        }
    }

    #[test]
    fn hostile_posts_cost_a_bounded_number_of_words() {
        let long = "ab ".repeat(1_000_000);
        assert!(HeadFeatures::of(&long, &long).buckets.len() < 640);
        assert!(HeadFeatures::of("", "").buckets.is_empty());
        assert_eq!(HeadFeatures::of("", &"'’'@@@".repeat(999)).buckets.len(), 0);
    }

    proptest::proptest! {
        #[test]
        fn english_detection_is_equal_in_parts_and_in_one_pass(title in "([a-zA-Z@']{1,7}[ ?!]){0,9}(@[a-z]{1,3}|http://x|n')?", text in "([a-z']{1,7}[ ,.!]|é|und |der |the |http://){0,99}") {
            let (_, english) = super::read(&title, &text);
            proptest::prop_assert_eq!(english, Some(super::is_english(&format!("{title}\n\n{text}"))));
        }

        #[test]
        fn combined_answers_equal_those_of_each_head(title in "([a-zA-Z]{1,7}[ ?!]){0,9}", text in "([a-z']{1,7}[ ,.!]|é|und |der ){0,200}") {
            let features = HeadFeatures::of(&title, &text);
            let expected = model().heads.iter().map(|head| features.answer(head.logit(&features)).to_bits());
            let found = answers(&title, &text).map(f64::to_bits);
            proptest::prop_assert_eq!(found.to_vec(), expected.collect::<Vec<_>>());
        }
    }
}
