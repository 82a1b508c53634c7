//! Sentence vectors: what the sentences of a post mean, as numbers that can be compared.
//!
//! [`Encoder`] reads a post once, with a small transformer, and returns a [`Vector`] for each sentence and one for the
//! whole. Two texts about the same subject have similar vectors even if they share no word. Callers pay about 10 ms of
//! one core per post and keep the vectors for all Managers.
//!
//! The weights are one file ([`envelope`]), which `tools/relevance-reader` writes and `model/README.md` describes.
//! Without a usable file there is no encoder, only an error that says why: the caller then decides without vectors.

mod encoder;
mod envelope;
mod tokens;
mod vector;

pub use encoder::{Encoder, MAX_TOKENS, ReadError, Reading};
pub use envelope::{OpenError, Problem};
pub use vector::{DIMENSIONS, Vector};
