//! Vectors give 20 numbers for a pair of customer and post, which `tools/relevance-reader/likeness.py` computes
//! as well.
//!
//! Being close to an offer is not enough, since a need in a neighbouring field is close as well. So offers compete with
//! other goods and subjects: is an offer the best explanation of what the post is about?

use crate::{
    Vector,
    categories::QUESTIONS,
    customer::Customer,
    post::{Post, Sentence, View},
};

/// Numbers that compare a post with a customer.
pub const LIKENESS: usize = 2 * 3 * QUESTIONS + 8;
/// How sharply the best explanation wins.
const HEAT: f32 = 0.05;
/// Offers that explain a sentence together.
const BEST: usize = 3;
/// Contrast where nothing is compared.
const NONE: f32 = -0.3;

impl Post {
    /// Returns how near the post is to what a customer sells, and how much nearer than to other goods. The order is that of
    /// the learned weights.
    pub fn likeness(&self, customer: &Customer) -> [f32; LIKENESS] {
        let needed = || self.sentences.iter().filter(|sentence| sentence.is_need);
        let count = self.sentences.len().max(1);
        #[expect(clippy::cast_precision_loss, reason = "few sentences")]
        let share_of_needs = needed().count() as f32 / count as f32;
        let brief = self
            .sentences
            .iter()
            .map(|sentence| sentence.vector.likeness(&customer.brief));
        let numbers = [&self.title, &self.whole]
            .into_iter()
            .flat_map(|view| of_questions(view, customer))
            .chain([highest(brief).unwrap_or(0.0), share_of_needs])
            .chain(of_sentences(self.sentences.iter(), customer))
            .chain(of_sentences(needed(), customer));
        let mut found = [0.0; LIKENESS];
        for (slot, number) in found.iter_mut().zip(numbers) {
            *slot = number;
        }
        found
    }
}

/// Returns three numbers for each question. The first is how near the post is to the question about the best offer. The
/// others are how much nearer that is than the question about any other good, and than the offer without a question.
fn of_questions(view: &View, customer: &Customer) -> impl Iterator<Item = f32> {
    let best = |vectors: &[Vector]| highest(view.vector.each_likeness(vectors)).unwrap_or(0.0);
    let offer = best(&customer.offers);
    (0..QUESTIONS).flat_map(move |number| {
        let question = best(&customer.questions[number]);
        let contrast = highest(of_others(&view.questions[number], customer))
            .map_or(NONE, |other| question - other);
        [question, contrast, question - offer]
    })
}

/// Returns the highest likeness to an offer, contrast with other goods, and share of offers in the explanation.
fn of_sentences<'a>(
    sentences: impl Iterator<Item = &'a Sentence>,
    customer: &Customer,
) -> [f32; 3] {
    let numbers = sentences.map(|sentence| {
        let offers = sentence.vector.each_likeness(&customer.offers);
        let best = highest(offers.iter().copied()).unwrap_or(0.0);
        let contrast =
            highest(of_others(&sentence.categories, customer)).map_or(NONE, |other| best - other);
        [
            best,
            contrast,
            share(offers, of_others(&sentence.categories, customer)),
        ]
    });
    numbers
        .reduce(|a, b| std::array::from_fn(|at| a[at].max(b[at])))
        .unwrap_or([0.0, NONE, 0.0])
}

fn of_others(categories: &[f32], customer: &Customer) -> impl Iterator<Item = f32> {
    customer
        .others
        .iter()
        .filter_map(|at| categories.get(*at).copied())
}

/// Returns the share of the best offers in a softmax over offers and other goods.
fn share(mut offers: Vec<f32>, others: impl Iterator<Item = f32>) -> f32 {
    offers.sort_by(|a, b| b.total_cmp(a));
    let weigh = |like: f32| (like / HEAT).exp();
    let mine: f32 = offers.into_iter().take(BEST).map(weigh).sum();
    mine / (mine + others.map(weigh).sum::<f32>())
}

fn highest(numbers: impl IntoIterator<Item = f32>) -> Option<f32> {
    numbers.into_iter().reduce(f32::max)
}
