//! The adapters against the simulator and against recorded responses.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod bluesky;
mod boundary;
mod discourse;
mod exactly_once;
mod exactly_once_feeds;
mod exactly_once_microblog;
mod facebook;
mod feed_cases;
mod feedparser;
mod feeds;
mod fetch;
mod forum_recordings;
mod hackernews;
mod hostile_forums;
mod ids;
mod late;
mod lemmy;
mod linkedin;
mod lobsters;
mod mastodon;
mod microblog_recordings;
mod network_recordings;
mod odd_items;
mod outages;
mod platform;
mod recordings;
mod reddit;
mod registry;
mod schedule;
mod silence;
mod stalled_pages;
mod wild_feeds;
mod x;
