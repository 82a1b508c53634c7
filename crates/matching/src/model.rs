//! How much each part of a post counts.
//!
//! A post is decided in two steps. The **gate** is a quick check: topic, own name and watched names each add to the
//! score, and add more if the post is of the kind that the focus asks for. It lets through a few posts in a thousand,
//! and an index can bound it. The **verdict** weighs the evidence of those: the probability that a person would keep
//! the post. The weights are learned ([`crate::model_file`]).

use domain::{Focus, Sensitivity};

use crate::{
    evidence::values::Evidence,
    heads::{self, MAX_ANSWER},
    model_file::Gate,
};

/// Thresholds of compiled instructions: a row for each [`Focus`], with PRECISE, BALANCED and BROAD.
const THRESHOLDS: [[f64; 3]; 3] = [
    [0.37, 0.26, 0.12], // SALES
    [0.6, 0.3, 0.12],   // COMPETITOR
    [0.56, 0.38, 0.2],  // CRISIS
];

/// Returns the score that a post must reach for a focus at the chosen sensitivity.
pub fn threshold(focus: Focus, sensitivity: Sensitivity) -> f64 {
    THRESHOLDS[focus as usize][sensitivity as usize]
}

/// Posts whose topic is no more unusual than this do not pass the gate because of their topic.
const ORDINARY_SURPRISE: f64 = 1.2;

/// Maximum number of lexicon phrases counted; more say nothing new.
pub(crate) const LEXICON_CAP: f64 = 2.0;

/// BM25: how soon repetition of a term stops adding to its score.
const K1: f64 = 1.6;
/// BM25: how much the length of a post lowers a term's score.
const B: f64 = 0.6;
/// Number of words in a typical post.
const USUAL_LENGTH: f64 = 80.0;
/// Weight of an occurrence in the title.
const TITLE: f64 = 2.0;

/// Maximum strength of a name.
pub(crate) const MAX_NAME_STRENGTH: f64 = 1.2;

/// Input of the gate.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Features {
    /// How unusual this topic score is, 0 to 3: see [`crate::topic_scale`].
    pub(crate) surprise: f64,
    pub(crate) own_name: f64,
    pub(crate) watched_names: f64,
    pub(crate) lexicon: f64,
    pub(crate) head: f64,
}

fn gate(focus: Focus) -> &'static Gate {
    &heads::model().gates[focus as usize]
}

/// Returns the gate's margin: the post passes at zero and above.
pub(crate) fn gate_margin(focus: Focus, features: &Features) -> f64 {
    margin(gate(focus), features)
}

fn margin(gate: &Gate, features: &Features) -> f64 {
    let lexicon = features.lexicon.min(LEXICON_CAP);
    let head = features.head;
    gate.bias
        + excess(features.surprise)
            * (gate.topic + gate.topic_head * head + gate.topic_lexicon * lexicon)
        + features.own_name
            * (gate.own_name + gate.own_name_head * head + gate.own_name_lexicon * lexicon)
        + features.watched_names
            * (gate.watched_names
                + gate.watched_names_head * head
                + gate.watched_names_lexicon * lexicon)
}

/// Returns the part of a surprise that the gate counts.
pub(crate) fn excess(surprise: f64) -> f64 {
    (surprise - ORDINARY_SURPRISE).max(0.0)
}

/// Returns the probability that a person would keep the post.
pub(crate) fn probability(focus: Focus, evidence: &Evidence) -> f64 {
    let verdict = &heads::model().verdicts[focus as usize];
    let parts = verdict.weights.iter().zip(evidence.values());
    score(parts.fold(verdict.bias, |sum, (weight, value)| sum + weight * value))
}

/// Returns the probability for a sum of the verdict, rounded to three decimals: it is not more precise than that, and
/// they are easy to read.
pub(crate) fn score(sum: f64) -> f64 {
    (sigmoid(sum) * 1e3).round() / 1e3
}

/// Returns how much a term of this strength adds, for ranking it among the others of a post.
pub(crate) fn topic_share(focus: Focus, strength: f64) -> f64 {
    let gate = gate(focus);
    strength * share(gate.topic, gate.topic_head, gate.topic_lexicon)
}

pub(crate) fn own_name_share(focus: Focus, strength: f64) -> f64 {
    let gate = gate(focus);
    strength * share(gate.own_name, gate.own_name_head, gate.own_name_lexicon)
}

pub(crate) fn watched_name_share(focus: Focus, strength: f64) -> f64 {
    let gate = gate(focus);
    strength
        * share(
            gate.watched_names,
            gate.watched_names_head,
            gate.watched_names_lexicon,
        )
}

/// Assumes a post that is half of the kind that the focus asks for.
fn share(alone: f64, head: f64, lexicon: f64) -> f64 {
    alone + head * MAX_ANSWER / 2.0 + lexicon * LEXICON_CAP / 2.0
}

/// Returns the number of occurrences, with the title's weight.
pub(crate) fn frequency(title: u32, text: u32) -> f64 {
    TITLE * f64::from(title) + f64::from(text)
}

/// Returns a term's saturated frequency in a post of `length` words: 1 for one occurrence in a typical post, and at
/// most `1 + K1`.
pub(crate) fn saturated(frequency: f64, length: u32) -> f64 {
    let norm = 1.0 - B + B * f64::from(length) / USUAL_LENGTH;
    frequency * (K1 + 1.0) / (frequency + K1 * norm)
}

/// Returns how strongly a name stands out: 1 for one mention, towards 1.2 for many.
pub(crate) fn name_strength(frequency: f64) -> f64 {
    if frequency > 0.0 {
        MAX_NAME_STRENGTH * frequency / (frequency + 0.2)
    } else {
        0.0
    }
}

/// `libm`'s exponential is the same on every machine; the standard library's is not.
fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

#[cfg(test)]
mod tests {
    use domain::{Focus, Sensitivity};

    use super::{Features, LEXICON_CAP, MAX_ANSWER, gate, gate_margin, margin, sigmoid, threshold};
    use crate::model_file::Gate;

    /// Returns whether a post with these features passes the gate.
    fn passes(focus: Focus, [surprise, own, watched]: [f64; 3], head: f64, lexicon: f64) -> bool {
        let features = Features {
            surprise,
            own_name: own,
            watched_names: watched,
            lexicon,
            head,
        };
        gate_margin(focus, &features) >= 0.0
    }

    #[test]
    fn thresholds_fall_from_precise_to_broad() {
        for focus in Focus::ALL {
            let [precise, balanced, broad] = Sensitivity::ALL.map(|one| threshold(focus, one));
            assert!(precise > balanced && balanced > broad, "{focus:?}");
            assert!(precise <= 0.95 && broad >= 0.05, "{focus:?}");
        }
    }

    #[test]
    fn sales_gate_requires_topic() {
        assert!(passes(Focus::Sales, [2.5, 0.0, 0.0], 4.5, 2.0));
        assert!(!passes(Focus::Sales, [0.2, 0.0, 0.0], MAX_ANSWER, 9.0));
    }

    #[test]
    fn competitor_gate_requires_a_competitor() {
        assert!(passes(Focus::Competitor, [0.0, 0.0, 1.0], 1.0, 0.0));
        assert!(!passes(Focus::Competitor, [0.5, 0.0, 0.0], 2.0, 1.0));
    }

    #[test]
    fn crisis_gate_requires_the_own_name() {
        assert!(passes(Focus::Crisis, [0.0, 1.0, 0.0], 4.0, 1.0));
        assert!(!passes(Focus::Crisis, [3.0, 0.0, 0.0], MAX_ANSWER, 9.0));
    }

    #[test]
    fn intent_alone_never_passes() {
        for focus in Focus::ALL {
            assert!(!passes(focus, [0.05, 0.0, 0.0], MAX_ANSWER, LEXICON_CAP));
            assert!(gate(focus).bias < 0.0, "{focus:?}");
        }
    }

    #[test]
    fn sums_are_the_same_on_every_machine() {
        let features = Features {
            surprise: 1.25,
            own_name: 0.5,
            watched_names: 0.0,
            lexicon: 2.0,
            head: 3.75,
        };
        let gate = Gate::from_slopes(-4.1, [0.3, 0.2, 0.4, 0.1, 0.7, 0.05, 5.0, 1.0, 1.0]);
        assert_eq!(
            sigmoid(margin(&gate, &features)).to_bits(),
            4_589_669_606_422_054_489
        );
    }
}
