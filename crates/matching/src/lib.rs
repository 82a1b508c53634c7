//! Decides for which of all Managers a post is worth a person's attention, and says why.
//!
//! [`text`] cuts posts, pages and terms into words by the same rules.
//!
//! No I/O, no async, no lock on the way of a post; any input is taken without panic.

pub mod text;
