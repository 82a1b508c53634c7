//! A poll and the properties of its feed.

use std::{sync::Arc, time::Duration};

use backbone::{Backbone, places::Places, shares::Shares};
use domain::{Id, Post};
use outbound::large;
use platforms::{Cursor, Gap, Polled};
use runtime::Config;
use store::{feeds::LeasedFeed, refused_posts::WriteLimit};
use tokio_util::sync::CancellationToken;

use super::UsedUp;
use crate::{
    plans::{Plans, reach_back},
    site_pace::SitePace,
    watched::Watched,
};

/// A poll that takes at least so long, until it is stored, is slow. The next poll of its feed then counts as slow as well.
pub(crate) const SLOW: Duration = Duration::from_secs(5);

/// Maximum number of polls and look-backs that hold a large document, or a large page of a platform, and of polls that hold
/// many matches, at a time.
const LARGE: usize = 12;

/// Limits of what an account takes from others.
pub(crate) struct Limits {
    /// Database connections that its polls use at a time.
    pub(crate) connections: Shares,
    /// Places for large documents and many matches.
    large: Arc<Places>,
    pub(crate) site_pace: SitePace,
    pub(crate) used_up: UsedUp,
    /// Refused posts that its polls write.
    pub(super) refused_posts: WriteLimit,
}

impl Limits {
    pub(crate) fn new(connections: usize) -> Self {
        Self {
            connections: Shares::of(connections),
            large: Arc::new(Places::new(LARGE)),
            site_pace: SitePace::default(),
            used_up: UsedUp::default(),
            refused_posts: WriteLimit::default(),
        }
    }

    /// Runs work of an account. The work takes a place at its first large document, or with many matches, and holds
    /// it to the end.
    pub(crate) fn in_turn<W: Future>(
        &self,
        account: Id,
        work: W,
    ) -> impl Future<Output = W::Output> + use<W> {
        let large = Arc::clone(&self.large);
        large::in_turn(move || Arc::clone(&large).take(account), work)
    }
}

pub(crate) struct Poll {
    pub(crate) watched: Watched,
    pub(crate) config: Arc<Config>,
    pub(crate) backbone: Backbone,
    pub(crate) plans: Arc<Plans>,
    pub(crate) feed: LeasedFeed,
    /// The account that the poll counts for.
    pub(crate) account: Id,
    pub(crate) limits: Arc<Limits>,
    pub(crate) shutdown: CancellationToken,
}

impl Poll {
    /// Returns true if the posts are from the feed's first reading, which may take several polls.
    pub(super) fn is_first_reading(&self) -> bool {
        let Some(cursor) = &self.feed.cursor else {
            return true;
        };
        Cursor::from_json(cursor).is_some_and(|cursor| cursor.is_first_reading())
    }

    /// Returns true unless the post is from before its feed was watched again. All Managers that watch the feed now
    /// have begun since, and `scanner.backfill` bounds what they get from before, as in a first reading.
    pub(super) fn is_wanted(&self, post: &Post) -> bool {
        let reach = reach_back(self.config.scanner.backfill);
        let since = self.feed.rewatch_time;
        since.is_none_or(|since| post.time >= since.minus(reach))
    }

    /// Gap that the poll found, unless it ended before the feed was watched again: then no Manager misses its posts.
    pub(super) fn missed<'a>(&self, polled: &'a Polled) -> Option<&'a Gap> {
        let gap = polled.gap.as_ref();
        gap.filter(|gap| gap.to.is_none() || self.feed.rewatch_time < gap.to)
    }

    /// Returns true if the poll read all posts from before the feed was watched again.
    pub(super) fn is_caught_up(&self, polled: &Polled) -> bool {
        let newest = polled.posts.iter().map(|post| post.time).max();
        !polled.more || self.feed.rewatch_time <= newest
    }

    /// Returns true if the feed is the stream of a whole network.
    pub(super) fn is_stream(&self) -> bool {
        let adapter = &self.watched.platform.adapter;
        adapter.is_whole_network(self.feed.name.what())
    }

    /// Returns true if posts of the feed may become visible late, and are searched for.
    pub(super) fn has_late_posts(&self) -> bool {
        self.watched.platform.adapter.has_late_posts()
    }

    /// Returns the operator's interval exactly, or the platform's, but never less than the minimum.
    pub(super) fn usual_interval(&self) -> Duration {
        let platform = &self.watched.platform;
        platform.poll_interval.unwrap_or_else(|| {
            platform
                .interval()
                .max(self.config.scanner.poll_interval_min)
        })
    }
}
