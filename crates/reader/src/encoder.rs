use std::{path::Path, sync::Arc};

use rten::{Model, NodeId, RunOptions, ThreadPool};
use rten_tensor::{NdTensor, prelude::*};

use crate::{
    DIMENSIONS, OpenError, Problem, Vector, envelope,
    tokens::{END, START, Tokenizer},
};

/// Format of the weights file: parts are vocabulary and model.
const FORMAT: &envelope::Format = b"earread";

/// Tokens that are read of a post; the rest is ignored. The time grows with them.
pub const MAX_TOKENS: usize = 128;

/// Error while a text is read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot run the model: {0}")]
    Run(#[from] rten::RunError),
    #[error("the model returned numbers that are not vectors of {DIMENSIONS}")]
    Shape,
    #[error("a customer needs at least one offer to be compared with posts")]
    NoOffers,
    #[error("what the customer sells is not in English")]
    OtherLanguage,
}

/// Vectors of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The whole text, as far as it was read.
    pub whole: Vector,
    /// Each sentence in its context. Sentences beyond [`MAX_TOKENS`] are missing; `None` for one without tokens.
    pub sentences: Vec<Option<Vector>>,
}

/// A transformer that turns sentences into vectors, on the calling thread's behalf in a thread that it keeps.
pub struct Encoder {
    tokenizer: Tokenizer,
    model: Model,
    input: NodeId,
    output: NodeId,
    /// One thread: more would take cores from polls, and a short text gains little.
    pool: Arc<ThreadPool>,
    version: String,
}

impl Encoder {
    /// Loads the weights and reads a short text with them, so that a model of another shape fails here.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::load(path).map_err(|problem| problem.of(path))
    }

    fn load(path: &Path) -> Result<Self, Problem> {
        let envelope::Contents {
            checksum,
            parts: [vocabulary, model],
        } = envelope::read(path, FORMAT)?;
        let unusable = |error: &dyn std::fmt::Display| Problem::Unusable(error.to_string());
        let vocabulary = str::from_utf8(&vocabulary)
            .map_err(|error| Problem::Unusable(format!("vocabulary: {error}")))?;
        let model = Model::load(model).map_err(|error| unusable(&error))?;
        let node = |name| model.node_id(name).map_err(|error| unusable(&error));
        let (input, output) = (node("input_ids")?, node("tokens")?);
        let encoder = Self {
            tokenizer: Tokenizer::new(vocabulary)?,
            input,
            output,
            model,
            pool: Arc::new(ThreadPool::with_num_threads(1)),
            version: checksum[..6]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        };
        encoder.read(["Hello."]).map_err(|error| unusable(&error))?;
        Ok(encoder)
    }

    /// Returns the beginning of the weights' checksum: equal versions give comparable vectors.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Reads sentences as one text. Blocks the thread for about 10 ms.
    pub fn read<'a>(
        &self,
        sentences: impl IntoIterator<Item = &'a str>,
    ) -> Result<Reading, ReadError> {
        let mut tokens = vec![START];
        let mut ranges = Vec::new();
        for sentence in sentences {
            let start = tokens.len();
            let room = MAX_TOKENS - 1 - start;
            if room == 0 {
                break;
            }
            self.tokenizer.append(sentence, room, &mut tokens);
            ranges.push(start..tokens.len());
        }
        tokens.push(END);
        let vectors = self.run(tokens)?;
        let token = |at: usize| vectors.slice(at).data().unwrap_or_default();
        let count = vectors.size(0);
        Ok(Reading {
            whole: Vector::mean((0..count).map(token)).ok_or(ReadError::Shape)?,
            sentences: ranges
                .into_iter()
                .map(|range| Vector::mean(range.map(token)))
                .collect(),
        })
    }

    /// Returns a vector for each token.
    fn run(&self, tokens: Vec<i32>) -> Result<NdTensor<f32, 2>, ReadError> {
        let count = tokens.len();
        let input = NdTensor::from_data([1, count], tokens);
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(&self.pool)));
        let outputs = self.model.run(
            vec![(self.input, input.view().into())],
            &[self.output],
            Some(options),
        )?;
        let output = outputs.into_iter().next().ok_or(ReadError::Shape)?;
        let output: NdTensor<f32, 3> = output.try_into().map_err(|_mismatch| ReadError::Shape)?;
        if output.shape() != [1, count, DIMENSIONS] {
            return Err(ReadError::Shape);
        }
        Ok(output.into_shape([count, DIMENSIONS]))
    }
}
