//! The targets, by their kind of input.

pub(crate) mod adapters;
pub(crate) mod config;
pub(crate) mod event;
pub(crate) mod page;
pub(crate) mod requests;
