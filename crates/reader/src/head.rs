//! The learned layer: from today's evidence, likeness and the post's vector to a probability.
//!
//! Its file, which `tools/relevance-reader/train.py` writes, has four parts: version of the encoder, names of the evidence,
//! forms of the questions, and numbers. Numbers are, for each focus, a bias and the weights of evidence, likeness and post;
//! then the vectors of the categories.

use std::path::Path;

use domain::Focus;

use crate::{
    DIMENSIONS, OpenError, Problem, Vector, categories::Categories, customer::Customer, envelope,
    likeness::LIKENESS, post::Post,
};

const FORMAT: &envelope::Format = b"earhead";
const FOCI: usize = Focus::ALL.len();

pub(crate) struct Head {
    layers: [Layer; FOCI],
    pub(crate) categories: Categories,
}

struct Layer {
    bias: f32,
    evidence: Vec<f32>,
    likeness: Vec<f32>,
    post: Vector,
}

impl Head {
    /// Loads a layer that was fitted to vectors of this version and to this evidence.
    pub(crate) fn open(path: &Path, version: &str, evidence: &[&str]) -> Result<Self, OpenError> {
        Self::load(path, version, evidence).map_err(|problem| problem.of(path))
    }

    fn load(path: &Path, version: &str, evidence: &[&str]) -> Result<Self, Problem> {
        let contents = envelope::read::<4>(path, FORMAT)?;
        let [encoder, names, forms, numbers] = &contents.parts;
        let text = |part: &'static str, bytes| {
            str::from_utf8(bytes).map_err(|error| Problem::Unusable(format!("{part}: {error}")))
        };
        let encoder = text("encoder", encoder)?;
        if encoder != version {
            return Err(Problem::OtherEncoder {
                expected: encoder.to_owned(),
                found: version.to_owned(),
            });
        }
        let names: Vec<_> = text("evidence", names)?.lines().collect();
        if names != evidence {
            let same = names.iter().zip(evidence).take_while(|(a, b)| a == b);
            return Err(Problem::OtherEvidence(same.count()));
        }
        let unusable = |what: &str| Problem::Unusable(format!("numbers: {what}"));
        let (numbers, []) = numbers.as_chunks() else {
            return Err(unusable("the length is no multiple of four"));
        };
        let numbers: Vec<_> = numbers.iter().copied().map(f32::from_le_bytes).collect();
        if !numbers.iter().all(|number| number.is_finite()) {
            return Err(unusable("not finite"));
        }
        let size = 1 + evidence.len() + LIKENESS + DIMENSIONS;
        let (layers, categories) = numbers
            .split_at_checked(FOCI * size)
            .ok_or_else(|| unusable("too few"))?;
        let mut layers = layers
            .chunks(size)
            .filter_map(|part| Layer::parse(part, evidence.len()));
        let mut next = || layers.next().ok_or_else(|| unusable("too few"));
        Ok(Self {
            layers: [next()?, next()?, next()?],
            categories: Categories::parse(text("questions", forms)?, categories)
                .ok_or_else(|| unusable("the categories are incomplete"))?,
        })
    }

    /// Returns the probability that a person would keep the post.
    pub(crate) fn judge(
        &self,
        focus: Focus,
        evidence: &[f64],
        post: &Post,
        customer: &Customer,
    ) -> f64 {
        let layer = &self.layers[focus as usize];
        let about = match focus {
            Focus::Sales => vec![&post.whole.vector],
            Focus::Competitor | Focus::Crisis => post.about(&customer.names),
        };
        let of_post: f64 = about
            .iter()
            .map(|one| f64::from(layer.post.likeness(one)))
            .sum();
        #[expect(clippy::cast_precision_loss, reason = "few sentences")]
        let of_post = of_post / about.len() as f64;
        let like = post.likeness(customer).map(f64::from);
        let sum = f64::from(layer.bias)
            + weighted(&layer.evidence, evidence)
            + weighted(&layer.likeness, &like)
            + of_post;
        1.0 / (1.0 + (-sum).exp())
    }
}

impl Layer {
    fn parse(numbers: &[f32], evidence: usize) -> Option<Self> {
        let (bias, numbers) = numbers.split_first()?;
        let (evidence, numbers) = numbers.split_at_checked(evidence)?;
        let (likeness, post) = numbers.split_at_checked(LIKENESS)?;
        Some(Self {
            bias: *bias,
            evidence: evidence.to_vec(),
            likeness: likeness.to_vec(),
            post: Vector::new(post.try_into().ok()?),
        })
    }
}

fn weighted(weights: &[f32], values: &[f64]) -> f64 {
    let parts = weights.iter().zip(values);
    parts
        .map(|(weight, value)| f64::from(*weight) * value)
        .sum()
}
