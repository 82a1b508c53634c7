//! The adapters against the simulator and against recorded answers.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod bluesky;
mod control;
mod facebook;
mod exactly_once;
mod exactly_once_microblog;
mod feeds;
mod fetch;
mod hackernews;
mod lemmy;
mod linkedin;
mod mastodon;
mod microblog_recordings;
mod platform;
mod recordings;
mod registry;
mod schedule;
mod x;
