//! The model file: the intent classifiers, the gates and the verdict layers.
//!
//! Created by `cargo xtask train`, compiled in, and described in `model/README.md`. Numbers are little-endian; the same
//! training gives the same bytes.

use domain::Focus;

use crate::evidence::values::EVIDENCE;

const MAGIC: &[u8; 8] = b"earshot2";
const FOCI: usize = Focus::ALL.len();

/// Number of buckets that words and word pairs share, as a power of two.
pub const BUCKET_BITS: u32 = 16;

/// Everything that the training learns.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFile {
    /// Classifiers by `Focus as usize`: buying intent, comparison, trouble.
    pub heads: [Head; FOCI],
    pub gates: [Gate; FOCI],
    pub verdicts: [Verdict; FOCI],
}

/// A trained classifier.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Head {
    pub intercept: f64,
    /// Logit that a stored weight of 1 adds.
    pub scale: f64,
    /// Weights by bucket.
    pub weights: Vec<i8>,
}

/// Weights of the evidence; their sum is the logit of the probability that a person keeps the post.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    pub bias: f64,
    /// Weights in the order of [`EVIDENCE`].
    pub weights: [f64; EVIDENCE.len()],
}

impl Default for Verdict {
    fn default() -> Self {
        Self {
            bias: 0.0,
            weights: [0.0; EVIDENCE.len()],
        }
    }
}

/// Weights of the gate, which decides whether a post's evidence is computed. All except `bias` are zero or more, so
/// that no part lowers another and an index can bound the sum.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Gate {
    pub bias: f64,
    pub topic: f64,
    pub topic_head: f64,
    pub topic_lexicon: f64,
    pub own_name: f64,
    pub own_name_head: f64,
    pub own_name_lexicon: f64,
    pub watched_names: f64,
    pub watched_names_head: f64,
    pub watched_names_lexicon: f64,
}

impl Gate {
    /// Number of weights without the bias.
    pub const SLOPES: usize = 9;

    pub fn from_slopes(bias: f64, slopes: [f64; Self::SLOPES]) -> Self {
        let [
            topic,
            topic_head,
            topic_lexicon,
            own_name,
            own_name_head,
            own_name_lexicon,
            watched_names,
            watched_names_head,
            watched_names_lexicon,
        ] = slopes;
        Self {
            bias,
            topic,
            topic_head,
            topic_lexicon,
            own_name,
            own_name_head,
            own_name_lexicon,
            watched_names,
            watched_names_head,
            watched_names_lexicon,
        }
    }

    /// Returns all weights except the bias, in the order of [`crate::Signals::slopes`].
    pub fn slopes(&self) -> [f64; Self::SLOPES] {
        [
            self.topic,
            self.topic_head,
            self.topic_lexicon,
            self.own_name,
            self.own_name_head,
            self.own_name_lexicon,
            self.watched_names,
            self.watched_names_head,
            self.watched_names_lexicon,
        ]
    }
}

/// An untrained model: every post scores the same.
impl Default for ModelFile {
    fn default() -> Self {
        Self {
            heads: std::array::from_fn(|_| Head::default()),
            gates: [Gate::default(); FOCI],
            verdicts: [Verdict::default(); FOCI],
        }
    }
}

impl ModelFile {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for gate in &self.gates {
            bytes.extend(gate.bias.to_le_bytes());
            bytes.extend(gate.slopes().iter().flat_map(|slope| slope.to_le_bytes()));
        }
        for verdict in &self.verdicts {
            bytes.extend(verdict.bias.to_le_bytes());
            bytes.extend(
                verdict
                    .weights
                    .iter()
                    .flat_map(|weight| weight.to_le_bytes()),
            );
        }
        for head in &self.heads {
            bytes.extend(head.intercept.to_le_bytes());
            bytes.extend(head.scale.to_le_bytes());
            bytes.extend(head.weights.iter().map(|weight| weight.cast_unsigned()));
        }
        bytes
    }

    /// Returns `None` if the bytes are not a model file of this version.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let mut model = Self::default();
        for gate in &mut model.gates {
            let bias = number(&mut rest)?;
            let mut slopes = [0.0; Gate::SLOPES];
            for slope in &mut slopes {
                *slope = number(&mut rest).filter(|slope| *slope >= 0.0)?;
            }
            *gate = Gate::from_slopes(bias, slopes);
        }
        for verdict in &mut model.verdicts {
            verdict.bias = number(&mut rest)?;
            for weight in &mut verdict.weights {
                *weight = number(&mut rest)?;
            }
        }
        for head in &mut model.heads {
            head.intercept = number(&mut rest)?;
            head.scale = number(&mut rest)?;
            let (weights, behind) = rest.split_at_checked(1 << BUCKET_BITS)?;
            head.weights = weights.iter().map(|weight| weight.cast_signed()).collect();
            rest = behind;
        }
        rest.is_empty().then_some(model)
    }
}

fn number(bytes: &mut &[u8]) -> Option<f64> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(f64::from_le_bytes(*number)).filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::{BUCKET_BITS, Gate, ModelFile};

    #[test]
    fn model_file_round_trips_and_rejects_other_files() {
        let mut model = ModelFile::default();
        model.gates[1] = Gate::from_slopes(-4.5, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        for head in &mut model.heads {
            head.weights = vec![-3; 1 << BUCKET_BITS];
        }
        model.verdicts[2].weights[1] = -0.5;
        let bytes = model.to_bytes();
        assert_eq!(ModelFile::parse(&bytes), Some(model.clone()));
        assert_eq!(ModelFile::parse(&bytes[..bytes.len() - 1]), None);
        assert_eq!(ModelFile::parse(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(ModelFile::parse(b""), None);
        model.gates[0].topic = -1.0;
        assert_eq!(ModelFile::parse(&model.to_bytes()), None);
    }
}
