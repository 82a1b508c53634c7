//! The constants of the score.
//!
//! Chosen by hand, in round numbers, so that 0.5 says the same for each focus: SALES asks for the
//! topic and a wish to buy, COMPETITOR for a competitor's name, CRISIS for the own name and trouble.
//! Checked by measurement on 4,329 labelled public posts and 30 seed pages, whose plans were the 30
//! heaviest words and 10 commonest word pairs of each page: F1 and average precision .69 / .72 for
//! SALES, .95 / .95 for COMPETITOR, .65 / .78 for CRISIS. The constants of BM25 and of the
//! title move these by .02 at most.

use domain::Focus;

use crate::plan::Term;

/// From which score a post counts, where the instructions give none.
pub const THRESHOLD: f64 = 0.5;

/// BM25: how soon more of the same says nothing new.
const K1: f64 = 1.2;
/// BM25: how much a long post is held against a term.
const B: f64 = 0.4;
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
}

/// The layer that makes one score of the features, and how far each may reach.
struct Combine {
    bias: f64,
    topic: f64,
    topic_cap: f64,
    own_name: f64,
    watched_names: f64,
    lexicon: f64,
    lexicon_cap: f64,
}

const fn combine(focus: Focus) -> Combine {
    match focus {
        // Neither a strong topic nor a competitor's name reaches the threshold without a wish to buy.
        Focus::Sales => Combine {
            bias: -4.5,
            topic: 1.3,
            topic_cap: 3.0,
            own_name: 0.4,
            watched_names: 0.4,
            lexicon: 1.0,
            lexicon_cap: 2.0,
        },
        // A competitor's name is enough; comparison and topic rank.
        Focus::Competitor => Combine {
            bias: -4.0,
            topic: 0.6,
            topic_cap: 2.0,
            own_name: 0.4,
            watched_names: 4.2,
            lexicon: 0.3,
            lexicon_cap: 4.0,
        },
        // The own name is needed, and trouble with it.
        Focus::Crisis => Combine {
            bias: -3.8,
            topic: 0.15,
            topic_cap: 2.0,
            own_name: 2.8,
            watched_names: 0.0,
            lexicon: 1.2,
            lexicon_cap: 2.0,
        },
    }
}

/// The calibrated score, 0 to 1.
pub(crate) fn score(focus: Focus, features: &Features) -> f64 {
    let constants = combine(focus);
    let sum = constants.bias
        + constants.topic * features.topic.clamp(0.0, constants.topic_cap)
        + constants.own_name * features.own_name
        + constants.watched_names * features.watched_names
        + constants.lexicon * features.lexicon.min(constants.lexicon_cap);
    sigmoid(sum)
}

/// What a term or name of the strength given adds, to rank it among others.
pub(crate) fn topic_share(focus: Focus, strength: f64) -> f64 {
    combine(focus).topic * strength
}

pub(crate) fn own_name_share(focus: Focus, strength: f64) -> f64 {
    combine(focus).own_name * strength
}

pub(crate) fn watched_name_share(focus: Focus, strength: f64) -> f64 {
    combine(focus).watched_names * strength
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

    use super::{Features, THRESHOLD, score};

    /// Whether a post with these features counts.
    fn counts(focus: Focus, topic: f64, own: f64, watched: f64, lexicon: f64) -> bool {
        let features = Features {
            topic,
            own_name: own,
            watched_names: watched,
            lexicon,
        };
        score(focus, &features) >= THRESHOLD
    }

    #[test]
    fn sales_takes_topic_and_intent() {
        assert!(counts(Focus::Sales, 2.0, 0.0, 0.0, 2.0));
        assert!(!counts(Focus::Sales, 9.0, 0.0, 0.0, 0.0));
        assert!(!counts(Focus::Sales, 0.3, 0.0, 0.0, 9.0));
    }

    #[test]
    fn competitor_takes_a_competitors_name() {
        assert!(counts(Focus::Competitor, 0.0, 0.0, 1.0, 0.0));
        assert!(!counts(Focus::Competitor, 9.0, 1.0, 0.0, 9.0));
    }

    #[test]
    fn crisis_takes_the_own_name_and_trouble() {
        assert!(counts(Focus::Crisis, 0.0, 1.0, 0.0, 1.0));
        assert!(!counts(Focus::Crisis, 9.0, 1.0, 0.0, 0.0));
        assert!(!counts(Focus::Crisis, 9.0, 0.0, 0.0, 9.0));
    }

    #[test]
    fn the_score_is_the_same_on_every_machine() {
        let features = Features {
            topic: 1.25,
            own_name: 0.5,
            watched_names: 0.0,
            lexicon: 2.0,
        };
        let bits: Vec<u64> = Focus::ALL
            .map(|focus| score(focus, &features).to_bits())
            .into();
        assert_eq!(
            bits,
            [
                4599749284591520957,
                4590388571391226015,
                4603099799020370697
            ]
        );
    }
}
