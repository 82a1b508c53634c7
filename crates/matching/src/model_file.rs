//! The model file: the classifiers, and the layer that makes one score of all.
//!
//! Made by `cargo xtask train`, compiled in, told about in `model/README.md`. Numbers are
//! little-endian; the same training gives the same bytes.

use domain::Focus;

use crate::heads::{BUCKET_BITS, Head};

const MAGIC: &[u8; 8] = b"earshot1";
const FOCI: usize = Focus::ALL.len();

/// What is learned.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFile {
    /// By `Focus as usize`: buying intent, comparison, trouble.
    pub heads: [Head; FOCI],
    pub layers: [Layer; FOCI],
}

/// How the parts of a score add up. All but `bias` are zero or more, so that no part takes away from
/// another and an index may bound the score.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Layer {
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

impl Layer {
    /// How many constants beside the bias.
    pub const SLOPES: usize = 9;

    #[must_use]
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

    /// All but the bias, as [`crate::Signals::slopes`] has them.
    #[must_use]
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

/// A model that knows nothing: every post scores the same.
impl Default for ModelFile {
    fn default() -> Self {
        Self {
            heads: std::array::from_fn(|_| Head::default()),
            layers: [Layer::default(); FOCI],
        }
    }
}

impl ModelFile {
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for layer in &self.layers {
            bytes.extend(layer.bias.to_le_bytes());
            bytes.extend(layer.slopes().iter().flat_map(|slope| slope.to_le_bytes()));
        }
        for head in &self.heads {
            bytes.extend(head.intercept.to_le_bytes());
            bytes.extend(head.scale.to_le_bytes());
            bytes.extend(head.weights.iter().map(|weight| weight.cast_unsigned()));
        }
        bytes
    }

    /// `None` for what is no model file of this version.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let mut model = Self::default();
        for layer in &mut model.layers {
            let bias = number(&mut rest)?;
            let mut slopes = [0.0; Layer::SLOPES];
            for slope in &mut slopes {
                *slope = number(&mut rest).filter(|slope| *slope >= 0.0)?;
            }
            *layer = Layer::from_slopes(bias, slopes);
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
    use super::{Layer, ModelFile};
    use crate::heads::BUCKET_BITS;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let mut model = ModelFile::default();
        model.layers[1] = Layer::from_slopes(-4.5, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        for head in &mut model.heads {
            head.weights = vec![-3; 1 << BUCKET_BITS];
        }
        let bytes = model.to_bytes();
        assert_eq!(ModelFile::parse(&bytes), Some(model.clone()));
        assert_eq!(ModelFile::parse(&bytes[..bytes.len() - 1]), None);
        assert_eq!(ModelFile::parse(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(ModelFile::parse(b""), None);
        model.layers[0].topic = -1.0;
        assert_eq!(ModelFile::parse(&model.to_bytes()), None);
    }
}
