//! Names of the simulated platforms.

/// The platforms' names in [`Simulator::settings`](super::Simulator::settings).
pub const HACKER_NEWS: &str = "hackernews";
pub const LEMMY: &str = "lemmy";
pub const DISCOURSE: &str = "discourse";
pub const REDDIT: &str = "reddit";
pub const LOBSTERS: &str = "lobsters";
pub const LINKEDIN: &str = "linkedin";
pub const FACEBOOK: &str = "facebook";
pub const BLUESKY: &str = "bluesky";
pub const MASTODON: &str = "mastodon";
pub const X: &str = "x";
pub const BLOG: &str = "blog";
