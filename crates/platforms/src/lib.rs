//! Reads posts from platforms: one adapter per kind of platform, behind one trait.
//!
//! A feed is one pollable thing on one configured platform (`hackernews:newest`). An [`Adapter`] polls
//! it: it reads pages from the newest back to the feed's [`Cursor`], gives the posts that the cursor
//! has not seen in the one shape of [`domain::Post`], and the cursor to store beside them. An adapter
//! keeps nothing of its own but what it can ask for again (tokens, names, an open stream), so any replica
//! can take the next poll.
//!
//! What comes from a platform is hostile until it is a `Post`: answers are bounded in size, time and
//! pages, markup becomes plain text in [`text`], and what cannot be read is skipped or reported as a
//! [`PollError`], never a panic. All of it comes through [`fetch::Fetch`]; the scanner gives the one for
//! addresses that customers name.
//!
//! [`simulator`] speaks the same platforms' APIs from a list of posts, for tests and the demo.

pub mod adapter;
mod address_key;
pub mod bluesky;
pub mod budget;
pub mod cursor;
pub mod discourse;
pub mod facebook;
pub mod feed;
pub mod fetch;
pub mod hackernews;
pub mod lemmy;
pub mod linkedin;
pub mod mastodon;
mod paging;
mod reading;
pub mod reddit;
pub mod registry;
pub mod settings;
pub mod simulator;
pub mod text;
pub mod x;

pub use adapter::{Adapter, Community, Gap, PollError, PollLimits, Polled};
pub use address_key::AddressKey;
pub use budget::{Budget, Unlimited};
pub use cursor::Cursor;
pub use fetch::{Direct, Fetch, FetchError, FetchLimits, Fetched};
pub use registry::{Platform, Platforms};
pub use settings::{Settings, SettingsError, Source};
