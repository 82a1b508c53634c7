//! Judges posts by what they mean, with sentence vectors: numbers that can be compared.
//!
//! [`Encoder`] reads a text once, with a small transformer, and returns a [`Vector`] for each sentence and one for the
//! whole. Two texts about the same subject have similar vectors even if they share no word. [`Reader`] compares a [`Post`]
//! with what a [`Customer`] sells, and returns the probability that a person would keep the post. A post takes about
//! 10 ms of one core, for any number of Managers.
//!
//! What was learned is in two files ([`envelope`]), which `tools/relevance-reader` writes and `model/README.md` describes.
//! Without usable files there is no reader, only an error that says why: the caller then decides without it.

mod categories;
mod customer;
mod decide;
mod encoder;
mod envelope;
mod head;
mod likeness;
mod need;
mod post;
mod reader;
mod sentences;
mod tokens;
mod vector;

pub use customer::{Customer, MAX_OFFERS};
pub use decide::{candidate_threshold, is_candidate, obstacle};
pub use encoder::{Encoder, MAX_TOKENS, ReadError, Reading};
pub use envelope::{OpenError, Problem};
pub use likeness::LIKENESS;
pub use post::Post;
pub use reader::Reader;
pub use vector::{DIMENSIONS, Vector};
