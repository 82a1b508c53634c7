//! Kinds of attacks, and their sizes.

/// An attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Dimension {
    /// Searches that cost nearly as much as is allowed, from many keys
    Filters,
    /// 1,000 feeds that take 10 to 30 seconds to answer
    SlowFeeds,
    /// 100 Managers with a page that never answers
    SlowPages,
    /// Connections whose endpoints hang or fail, with many Scans
    Endpoints,
    /// Backfills of a Manager that matches everything
    Backfills,
    /// Replays of long delivery logs
    Replays,
    /// Previews of recent posts with a long draft
    Previews,
    /// Test deliveries to endpoints that hang
    Tests,
    /// Managers of 500 long terms, and posts that contain all of them
    Explain,
    /// Feeds and pages of hundreds of thousands of empty items
    Items,
    /// Managers that mute as many words as they can
    Mutes,
    /// Lists of the largest Scans, in the largest pages
    Pages,
    /// The same, by clients that do not read them
    SlowReaders,
    /// Deletion of a large Namespace in test mode
    Deletes,
    /// Changes of Managers that watch the victim's feed
    Churn,
    /// Deliveries of the largest posts to slow endpoints
    LargePosts,
    /// Wrong keys, from another address
    BadKeys,
    /// Feeds of 4.2 MB with new posts in each answer, and pages of 4 MB
    Documents,
    /// The first eight together
    All,
}

impl Dimension {
    /// Attacks that take time or turns.
    pub(super) const BUSY: [Self; 8] = [
        Self::Filters,
        Self::SlowFeeds,
        Self::SlowPages,
        Self::Endpoints,
        Self::Backfills,
        Self::Replays,
        Self::Previews,
        Self::Tests,
    ];
    /// Attacks that take memory, or that no quota counts.
    pub(super) const HEAVY: [Self; 10] = [
        Self::BadKeys,
        Self::Documents,
        Self::Explain,
        Self::Items,
        Self::Mutes,
        Self::Pages,
        Self::SlowReaders,
        Self::Deletes,
        Self::Churn,
        Self::LargePosts,
    ];
}

/// How much the account does: the same in kind in the short and the long form.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    /// Feeds that answer slowly.
    pub(super) slow_feeds: usize,
    pub(super) scans: usize,
    pub(super) replayed: u32,
    /// Managers with backfills.
    pub(super) backfills: u32,
    /// Posts of a document; each contains all terms.
    pub(super) matching: usize,
    /// Empty items of a document.
    pub(super) items: usize,
    /// Managers of the Namespace to delete.
    pub(super) managers: usize,
    /// The largest posts, in each of four feeds.
    pub(super) large: usize,
    /// Pieces of 5 KB of a large document.
    pub(super) pieces: usize,
}

impl Size {
    /// Just below the limits of documents and quotas.
    pub(super) const LONG: Self = Self {
        // The look for due feeds samples the accounts where more than 200 are due.
        slow_feeds: 1_000,
        scans: 10_000,
        replayed: 20_000,
        backfills: 20,
        matching: 1_500,
        items: 590_000,
        managers: 120,
        large: 28,
        pieces: 850,
    };
}
