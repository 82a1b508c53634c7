//! Upper bound of a verdict, from how often a plan's terms occur but not where.
//!
//! Most posts that pass a gate fail the verdict by far. The index knows how often each term occurs, so it drops these
//! before it unpacks the plan and looks at each position. The bound is only for posts without a name of the plan: names
//! are rare, and their evidence depends on the words around them.

use domain::Focus;

use super::{cues::Class, of_post::number, values::Evidence};
use crate::{heads, model, post::PostText};

/// Maximum weight of a term; more says nothing new, and a plan of one term has a weight of 5.
pub(super) const MAX_TERM: f64 = 2.5;
/// Tolerance: sums are computed in another order, and rounded.
const SLACK: f64 = 1e-6;

/// Upper bounds of what the terms of a plan that occur in a post add.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TopicBound {
    /// Number of terms.
    terms: u32,
    /// Sum of their weights.
    weights: f64,
    /// Sum of the weights of those in the title.
    in_title: f64,
    /// Sum of their weights in one sentence: a term with two readings can count twice.
    in_sentence: f64,
    /// Sum of the weights of all mentions.
    mentions: f64,
    strongest: f64,
}

impl TopicBound {
    /// Adds a term with so many mentions, counted for each of its readings.
    pub(crate) fn add(&mut self, weight: f64, mentions: u32, in_title: bool) {
        if weight <= 0.0 {
            return;
        }
        let weight = weight.min(MAX_TERM);
        self.terms += 1;
        self.weights += weight;
        self.in_title += if in_title { weight } else { 0.0 };
        self.in_sentence += weight * f64::from(mentions.min(2));
        self.mentions += weight * f64::from(mentions);
        self.strongest = self.strongest.max(weight);
    }

    /// Returns whether the score can reach the threshold in this post, which contains no name of the plan. `surprise`
    /// is at least that of the topic.
    pub(crate) fn may_reach(
        &self,
        threshold: f64,
        focus: Focus,
        surprise: f64,
        post: &PostText,
    ) -> bool {
        if focus == Focus::Crisis && post.title_len() == 0 {
            // Names decide the evidence of these.
            return true;
        }
        let own = post.evidence().own.values();
        let most = self.most(surprise, post).values();
        let verdict = &heads::model().verdicts[focus as usize];
        let parts = verdict.weights.iter().zip(own.iter().zip(&most));
        let sum = parts.fold(verdict.bias, |sum, (weight, (own, most))| {
            sum + weight * own + weight.max(0.0) * most
        });
        model::score(sum + SLACK) >= threshold
    }

    /// Returns the highest value of each number that depends on the plan. None is below zero.
    fn most(&self, surprise: f64, post: &PostText) -> Evidence {
        let of_post = post.evidence();
        let own = &of_post.own;
        let in_sentence = self.in_sentence.min(2.5);
        let near = |class: Class| {
            let any = of_post.classes.iter().any(|all| all & class.bit() != 0);
            if any { in_sentence } else { 0.0 }
        };
        let asked = of_post.layout.sentences.iter().any(|one| one.asks);
        // A post without a title uses its first sentence, and the index does not know where that ends.
        let in_title = if post.title_len() > 0 {
            self.in_title
        } else {
            self.weights
        };
        let words = number(of_post.words.len());
        Evidence {
            surprise,
            title_topic: in_title.min(3.0),
            opening_topic: self.weights.min(5.0),
            terms: f64::from(self.terms).ln_1p(),
            topic_density: (10.0 * self.mentions / (words + 20.0)).min(3.0),
            best_term: self.strongest,
            need_near_term: near(Class::Need),
            problem_near_term: near(Class::Problem),
            question_near_term: if asked { in_sentence } else { 0.0 },
            buying_near_term: heads::MAX_ANSWER,
            lacks_offer: 1.0,
            asked_topic: surprise
                * own
                    .title_asks
                    .max(own.title_need)
                    .max(0.5 * own.title_problem),
            needed_topic: surprise * own.needs.min(1.0),
            ..Evidence::default()
        }
    }
}
