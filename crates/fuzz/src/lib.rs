//! The parsers of hostile bytes, each as a function of bytes: one [`Target`] per parser.
//!
//! A target must return for any input: no panic, no endless loop, bounded memory. It also asserts the
//! guarantees that later code relies on ([`promises`]), so that a wrong result is found like a crash.
//!
//! The same functions run in two ways. `tests/replay.rs` runs them on their corpora and on mutations of these,
//! in every `cargo test`. `.ci/fuzz` builds `main.rs` with libFuzzer and with coverage of our crates, which
//! finds new branches. Inputs that once crashed are in `corpus/<target>/`, named after the bug.
//!
//! It is a member of the workspace, so that it shares the lock file and always compiles. The engine is behind a
//! feature that only `.ci/fuzz` enables, so that no one else needs a C++ compiler.

pub mod promises;
mod targets;

/// A parser as a function of bytes.
#[derive(Clone, Copy)]
pub struct Target {
    /// Name of the target and of its corpus folder.
    pub name: &'static str,
    pub run: fn(&[u8]),
}

/// Every target.
pub const TARGETS: &[Target] = &[
    target("filter", targets::requests::filter),
    target("page-token", targets::requests::page_token),
    target("names", targets::requests::names),
    target("body", targets::requests::body),
    target("config", targets::config::config),
    target("event", targets::event::event),
    target("page", targets::page::page),
    target("text", targets::page::text),
    target("bluesky", targets::adapters::bluesky),
    target("discourse", targets::adapters::discourse),
    target("facebook", targets::adapters::facebook),
    target("feed", targets::adapters::feed),
    target("hackernews", targets::adapters::hackernews),
    target("lemmy", targets::adapters::lemmy),
    target("linkedin", targets::adapters::linkedin),
    target("lobsters", targets::adapters::lobsters),
    target("mastodon", targets::adapters::mastodon),
    target("reddit", targets::adapters::reddit),
    target("x", targets::adapters::x),
];

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run }
}

/// The target of this name.
pub fn find(name: &str) -> Option<Target> {
    TARGETS.iter().find(|target| target.name == name).copied()
}
