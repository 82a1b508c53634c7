//! The adapters against the simulator and against recorded answers.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod control;
mod feeds;
mod fetch;
mod hackernews;
mod lemmy;
mod platform;
mod recordings;
mod registry;
mod schedule;
