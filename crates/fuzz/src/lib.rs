//! What reads hostile bytes, each as a function from bytes: one [`Target`] a parser.
//!
//! A target must come back for whatever it is given: no panic, no loop, bounded memory. Beyond that it
//! asserts what the code behind the parser relies on ([`promises`]), so that a wrong answer is found like a
//! crash is.
//!
//! The same functions run twice. `tests/replay.rs` gives them their corpora and changes of these, on every
//! `cargo test`. `.ci/fuzz` builds `main.rs` with libFuzzer and the coverage of our own crates, which finds
//! its way into branches by itself. What crashed once is kept in `corpus/<target>/`, under the name of what
//! was wrong.
//!
//! A member of the workspace, so that it shares its lock and cannot rot; the engine is behind a feature that
//! only `.ci/fuzz` turns on, so that nobody else needs a C++ compiler.

pub mod promises;
mod targets;

/// A parser that is given bytes.
#[derive(Clone, Copy)]
pub struct Target {
    /// Also the folder of its corpus.
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
    target("mastodon", targets::adapters::mastodon),
    target("reddit", targets::adapters::reddit),
    target("x", targets::adapters::x),
];

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run }
}

/// The target of this name.
#[must_use]
pub fn find(name: &str) -> Option<Target> {
    TARGETS.iter().find(|target| target.name == name).copied()
}
