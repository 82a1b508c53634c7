//! The constants of the score, and how it is made of its parts.
//!
//! Topic, own name and watched names each count by themselves, and more the more the post is of the
//! kind that the focus asks for: by the trained classifier ([`crate::heads`]) and by the lexicon
//! ([`crate::lexicon`]). Topic and intent together are what matters; either alone is not. How much each
//! counts is learned, one layer for each focus ([`crate::model_file`]), so that 0.5 says the same for
//! each, and none takes away from another.

use domain::Focus;

use crate::{
    heads::{self, MAX_ANSWER},
    model_file::Layer,
    plan::Term,
};

/// From which score a post counts, where the instructions give none.
pub const THRESHOLD: f64 = 0.5;

/// More of the topic than this says nothing new.
pub(crate) const TOPIC_CAP: f64 = 3.0;
/// More phrases of the lexicon than this say nothing new.
pub(crate) const LEXICON_CAP: f64 = 2.0;

/// BM25: how soon more of the same says nothing new.
const K1: f64 = 1.6;
/// BM25: how much a long post is held against a term.
const B: f64 = 0.6;
/// Words in a usual post.
const USUAL_LENGTH: f64 = 80.0;
/// An occurrence in the title counts this often.
const TITLE: f64 = 2.0;
/// The topic is counted in terms as strong as the strongest few of the plan. A plan of fewer terms is
/// a pointed one, and each of them says more.
const STRONGEST: usize = 5;

/// A name that stands out as much as any.
pub(crate) const MAX_NAME_STRENGTH: f64 = 1.2;

/// What a post says to a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Features {
    pub(crate) topic: f64,
    pub(crate) own_name: f64,
    pub(crate) watched_names: f64,
    pub(crate) lexicon: f64,
    pub(crate) head: f64,
}

fn layer(focus: Focus) -> &'static Layer {
    &heads::model().layers[focus as usize]
}

/// The calibrated score, 0 to 1.
pub(crate) fn score(focus: Focus, features: &Features) -> f64 {
    score_of(layer(focus), features)
}

fn score_of(layer: &Layer, features: &Features) -> f64 {
    let topic = features.topic.clamp(0.0, TOPIC_CAP);
    let lexicon = features.lexicon.min(LEXICON_CAP);
    let head = features.head;
    let sum = layer.bias
        + topic * (layer.topic + layer.topic_head * head + layer.topic_lexicon * lexicon)
        + features.own_name
            * (layer.own_name + layer.own_name_head * head + layer.own_name_lexicon * lexicon)
        + features.watched_names
            * (layer.watched_names
                + layer.watched_names_head * head
                + layer.watched_names_lexicon * lexicon);
    sigmoid(sum)
}

/// What a term or name of the strength given adds, to rank it among others of a post.
pub(crate) fn topic_share(focus: Focus, strength: f64) -> f64 {
    let layer = layer(focus);
    strength * share(layer.topic, layer.topic_head, layer.topic_lexicon)
}

pub(crate) fn own_name_share(focus: Focus, strength: f64) -> f64 {
    let layer = layer(focus);
    strength * share(layer.own_name, layer.own_name_head, layer.own_name_lexicon)
}

pub(crate) fn watched_name_share(focus: Focus, strength: f64) -> f64 {
    let layer = layer(focus);
    strength
        * share(
            layer.watched_names,
            layer.watched_names_head,
            layer.watched_names_lexicon,
        )
}

/// In a post that is half of the kind asked for.
fn share(alone: f64, head: f64, lexicon: f64) -> f64 {
    alone + head * MAX_ANSWER / 2.0 + lexicon * LEXICON_CAP / 2.0
}

/// Occurrences, with the title's weight.
pub(crate) fn frequency(title: u32, text: u32) -> f64 {
    TITLE * f64::from(title) + f64::from(text)
}

/// A term's frequency in a post of `length` words, saturated: 1 for one occurrence in a usual post,
/// never over `1 + K1`.
pub(crate) fn saturated(frequency: f64, length: u32) -> f64 {
    let norm = 1.0 - B + B * f64::from(length) / USUAL_LENGTH;
    frequency * (K1 + 1.0) / (frequency + K1 * norm)
}

/// How strongly a name stands out: 1 when named once, towards 1.2 when named again and again.
pub(crate) fn name_strength(frequency: f64) -> f64 {
    if frequency > 0.0 {
        MAX_NAME_STRENGTH * frequency / (frequency + 0.2)
    } else {
        0.0
    }
}

/// Makes weights relative to the plan's strongest, so that whoever wrote them, and on whatever scale,
/// the topic counts in terms.
pub(crate) fn scale(terms: &mut [Term]) {
    let strongest = terms.iter().take(STRONGEST);
    let sum: f64 = strongest.map(|term| term.weight.max(0.0)).sum();
    #[expect(clippy::cast_precision_loss, reason = "a small constant")]
    let mean = sum / STRONGEST as f64;
    if mean > 0.0 {
        for term in terms {
            term.weight /= mean;
        }
    }
}

/// `libm`'s exponential is the same on every machine; the standard library's is not.
fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

#[cfg(test)]
mod tests {
    use domain::Focus;

    use super::{Features, LEXICON_CAP, MAX_ANSWER, THRESHOLD, layer, score, score_of};
    use crate::model_file::Layer;

    /// Whether a post with these features counts.
    fn counts(focus: Focus, [topic, own, watched]: [f64; 3], head: f64, lexicon: f64) -> bool {
        let features = Features {
            topic,
            own_name: own,
            watched_names: watched,
            lexicon,
            head,
        };
        score(focus, &features) >= THRESHOLD
    }

    #[test]
    fn sales_takes_topic_and_intent() {
        assert!(counts(Focus::Sales, [2.0, 0.0, 0.0], 4.5, 2.0));
        assert!(!counts(Focus::Sales, [9.0, 0.0, 0.0], 0.0, 0.0));
        assert!(!counts(Focus::Sales, [0.2, 0.0, 0.0], MAX_ANSWER, 9.0));
    }

    #[test]
    fn competitor_takes_a_competitors_name() {
        assert!(counts(Focus::Competitor, [0.0, 0.0, 1.0], 1.0, 0.0));
        assert!(!counts(Focus::Competitor, [9.0, 1.0, 0.0], 2.0, 1.0));
    }

    #[test]
    fn crisis_takes_the_own_name_and_trouble() {
        assert!(counts(Focus::Crisis, [0.0, 1.0, 0.0], 4.0, 1.0));
        assert!(!counts(Focus::Crisis, [9.0, 1.0, 0.0], 0.5, 0.0));
        assert!(!counts(Focus::Crisis, [9.0, 0.0, 0.0], MAX_ANSWER, 9.0));
    }

    #[test]
    fn intent_alone_never_reaches_the_threshold() {
        for focus in Focus::ALL {
            assert!(!counts(focus, [0.05, 0.0, 0.0], MAX_ANSWER, LEXICON_CAP));
            assert!(layer(focus).bias < -1.0, "{focus:?}");
        }
    }

    #[test]
    fn the_score_is_the_same_on_every_machine() {
        let features = Features {
            topic: 1.25,
            own_name: 0.5,
            watched_names: 0.0,
            lexicon: 2.0,
            head: 3.75,
        };
        let layer = Layer::from_slopes(-4.1, [0.3, 0.2, 0.4, 0.1, 0.7, 0.05, 5.0, 1.0, 1.0]);
        assert_eq!(
            score_of(&layer, &features).to_bits(),
            4_601_009_486_112_555_556
        );
    }
}
