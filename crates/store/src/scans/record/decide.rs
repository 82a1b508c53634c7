//! Decides which matches become Scans, by values that were read under the locks of the clocks. It reads and writes
//! nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use domain::{ManagerName, Post, Timestamp};

use super::{NewScan, Origin, accounts::Capacity, posts::post_key};
use crate::{
    feed_post_ids,
    scans::{
        likes::{Key, Likes},
        quota::Quota,
    },
};

/// Limits of the Scans of Managers. Each decision changes them.
pub(super) struct Limits<'c> {
    /// Daily limit of each Manager; `None` if it has no limit.
    pub(super) quotas: HashMap<ManagerName, Option<Quota>>,
    /// Scans that each account may still have today.
    pub(super) capacity: Capacity<'c>,
    /// Posts that later ones may repeat.
    pub(super) likes: Likes,
}

/// Outcomes of matches, in their order. Near-duplicates are only in [`Limits::likes`].
#[derive(Default)]
pub(super) struct Decisions<'m, 'a> {
    /// Matches that become Scans.
    pub(super) scans: Vec<(Key, &'m NewScan<'a>)>,
    /// Managers of the matches that exceed the Manager's daily limit.
    pub(super) suppressed: Vec<ManagerName>,
    /// Matches that exceed the account's quota.
    pub(super) refused: Vec<(ManagerName, &'a Post)>,
    /// Keys of matches that a later run decides again.
    pub(super) released: Vec<Key>,
}

/// Outcome of one match.
enum Verdict {
    Scan,
    Duplicate,
    Suppressed,
    Refused,
}

/// Decides on the first match of each of these `fresh` keys.
pub(super) fn decide<'m, 'a>(
    matches: &'m [NewScan<'a>],
    mut fresh: BTreeSet<Key>,
    origin: Origin<'_>,
    limits: &mut Limits<'_>,
) -> Decisions<'m, 'a> {
    let mut decisions = Decisions::default();
    for one in matches {
        let key = (one.manager, post_key(one.post));
        if !fresh.remove(&key) {
            continue;
        }
        match limits.decide(key, one, origin) {
            Verdict::Scan => decisions.scans.push((key, one)),
            // A near-duplicate keeps its key, because it is decided only once.
            Verdict::Duplicate => {}
            Verdict::Suppressed => {
                decisions.suppressed.push(one.manager);
                // A new post is decided only once, too, so it keeps its key.
                if !matches!(origin, Origin::Poll) {
                    decisions.released.push(key);
                }
            }
            Verdict::Refused => {
                decisions.refused.push((one.manager, one.post));
                decisions.released.push(key);
            }
        }
    }
    decisions
}

impl Limits<'_> {
    fn decide(&mut self, key: Key, one: &NewScan<'_>, origin: Origin<'_>) -> Verdict {
        if self.likes.is_again(key, one.post) {
            return Verdict::Duplicate;
        }
        let has_capacity = self.capacity.is_left(&one.manager);
        // A new post spends a part of its Manager's limit on its own day, even if the quota refuses it. When it
        // comes again, it spends nothing. A repeated backfill must not spend it each time.
        let spends_limit = has_capacity || !matches!(origin, Origin::Past { .. });
        if spends_limit && !self.admits(one, origin) {
            return Verdict::Suppressed;
        }
        if !has_capacity {
            return Verdict::Refused;
        }
        self.capacity.spend(&one.manager);
        self.likes.is_new(key);
        Verdict::Scan
    }

    /// Returns true if the Manager's daily limit admits the match. It counts either way.
    fn admits(&mut self, one: &NewScan<'_>, origin: Origin<'_>) -> bool {
        let Some(Some(quota)) = self.quotas.get_mut(&one.manager) else {
            return true;
        };
        match origin {
            Origin::Poll => quota.admits(one.matched.score),
            Origin::FirstReading => quota.admits_past(),
            Origin::Past { silently, catch_up } => {
                let since = catch_up.get(&one.manager);
                let was_admitted = since.is_some_and(|since| one.post.time >= *since);
                silently || was_admitted || quota.admits_past()
            }
        }
    }
}

impl Decisions<'_, '_> {
    /// Returns since when the posts of each Manager are refused. Those of a backfill are not recorded.
    pub(super) fn refused_since(
        &self,
        origin: Origin<'_>,
        now: Timestamp,
    ) -> BTreeMap<ManagerName, DateTime<Utc>> {
        // A backdated post must not make a Manager read years of its feeds. The first reading of a feed has a start,
        // and other polls look for posts of a week.
        let earliest = match origin {
            Origin::Poll => now.minus(feed_post_ids::MAX_AGE),
            Origin::FirstReading => Timestamp::UNIX_EPOCH,
            Origin::Past { .. } => return BTreeMap::new(),
        };
        let mut oldest = BTreeMap::new();
        for (manager, post) in &self.refused {
            let time = post.time.max(earliest).to_chrono();
            let since = oldest.entry(*manager).or_insert(time);
            *since = time.min(*since);
        }
        oldest
    }
}

#[cfg(test)]
mod tests;
