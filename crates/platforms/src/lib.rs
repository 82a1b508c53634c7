//! Reads posts from platforms: one adapter per kind of platform, behind one trait.
//!
//! A feed is one pollable part of one configured platform (`hackernews:newest`). An [`Adapter`] polls it: it
//! reads pages from the newest back to the feed's [`Cursor`], returns the posts that the cursor has not seen as
//! [`domain::Post`], and the cursor to store with them. An adapter holds only state that it can get again
//! (tokens, names, an open stream), so any replica can run the next poll.
//!
//! All data from a platform is hostile until it is a `Post`: responses are bounded in size, time and pages,
//! markup becomes plain text in [`text`], and unreadable data is skipped or reported as a [`PollError`], never
//! a panic. All requests use [`fetch::Fetch`]; the scanner supplies the one for addresses from customers.
//!
//! The crate `platform-simulator` implements the same platforms' APIs on a list of posts, for tests and the demo.

pub mod adapter;
mod address;
mod address_key;
pub mod bluesky;
pub mod budget;
pub mod cursor;
pub mod discourse;
mod egress;
mod error;
pub mod facebook;
pub mod feed;
pub mod fetch;
pub mod hackernews;
mod ids;
mod kind;
pub mod lemmy;
pub mod linkedin;
pub mod lobsters;
pub mod mastodon;
mod null;
mod paging;
mod reading;
pub mod reddit;
pub mod registry;
pub mod settings;
pub mod text;
mod walk;
pub mod x;

pub use adapter::{Adapter, Community, Gap, PollLimits, Polled, RecheckResult, Skipped};
pub use address_key::AddressKey;
pub use budget::{Budget, Unlimited};
pub use cursor::Cursor;
pub use egress::leave_by;
pub use error::{FetchError, PollError, Throttled};
pub use fetch::{Direct, Fetch, FetchLimits, Fetched, MAX_PAUSE};
pub use ids::IdAccount;
pub use kind::PlatformKind;
pub use registry::{Platform, Platforms};
pub use settings::{Settings, SettingsError, Source};
