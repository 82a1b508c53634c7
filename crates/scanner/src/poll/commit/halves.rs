//! Stores the posts of a poll in halves, if the database refuses them together.
//!
//! All halves are in one transaction, with a savepoint each. Refused posts are recorded as quarantined, and the
//! other posts, the records and the cursor are committed together. So a crash loses nothing, and no post counts
//! twice.
//!
//! The posts are matched in parts, because all matches of a poll can take a gigabyte. The first part, which is nearly
//! always the whole poll, is matched and decided before the transaction. For the others nothing is read and no model
//! is asked: the transaction holds the feed's lock.

use std::{ops::Range, sync::Arc};

use domain::{ManagerName, Post, Timestamp, User};
use store::{
    AsyncConnection as _, AsyncPgConnection, QueryError,
    feeds::{QuarantineKind, Quarantined},
    keyed,
    scans::{NewScan, ScanCounter},
};

use super::{Attempt, BLOCK, Batch, Commit};
use crate::{
    find::{Matches, Pick},
    poll::{context::Poll, matched::broken_by_us},
};

/// A failure that is no constraint violation is attributed to a post only after this many in a row.
const FAILURES: u32 = 2;

impl Poll {
    /// Returns true if one post may be the reason why a poll could not be stored.
    pub(super) fn may_be_of_a_post(&self, error: &store::Error) -> bool {
        let is_settled = error.is_refusal() || self.feed.failure_count >= FAILURES;
        is_settled && error.may_blame_values()
    }

    /// Stores what can be stored, and quarantines the posts that the database refuses.
    pub(super) async fn commit_by_halves(
        &self,
        attempt: &Attempt<'_>,
    ) -> Result<Commit, store::Error> {
        let part_of = |posts| self.matches_of(posts, Arc::clone(attempt.index), Arc::default());
        let posts = &attempt.poll.polled.posts[..];
        let first = part_of(posts).await;
        let is_over = || self.shutdown.is_cancelled();
        first.decide_all(&self.plans, BLOCK, is_over).await;
        let _share = self.limits.connections.take(self.account, 1).await;
        let mut conn = self.backbone.pool.get().await?;
        keyed::begin(&mut conn).await?;
        let stored = async {
            let conn = &mut *conn;
            if let Some(lost) = self.check(conn, attempt).await? {
                return Ok(lost);
            }
            let mut counter = self.counter(attempt);
            let (mut batch, mut refused) = (Batch::default(), Vec::new());
            let (mut part, mut left) = (first.without_asking(), posts);
            loop {
                self.store_halves(conn, &part, &mut counter, &mut batch, &mut refused)
                    .await?;
                left = &left[part.posts().len()..];
                if left.is_empty() {
                    break;
                }
                // This waits for no place: the matches of the first part have one if there are more parts.
                part = part_of(left).await.without_asking();
            }
            self.finish(conn, attempt.poll, batch, refused, counter)
                .await
        };
        let stored = stored.await;
        keyed::end(&mut conn, stored).await
    }

    /// Stores posts by halves. Adds what it stores to `stored`, and the posts that the database refuses to `refused`.
    async fn store_halves(
        &self,
        conn: &mut AsyncPgConnection,
        all: &Matches<'_, impl Fn(&ManagerName, &Post) -> bool>,
        counter: &mut ScanCounter,
        stored: &mut Batch,
        refused: &mut Vec<Quarantined>,
    ) -> Result<(), store::Error> {
        let every_pick = all.picks();
        // A stack with the oldest posts on top.
        let whole = 0..all.posts().len();
        let mut waiting = vec![whole];
        while let Some(range) = waiting.pop() {
            let posts = &all.posts()[range.clone()];
            let picks = picks_of(&every_pick, &range);
            if picks.len() > BLOCK && posts.len() > 1 {
                waiting.extend(halves(range));
                continue;
            }
            let matches = all.decide_few(&self.plans, picks).await;
            let mut tried = self.try_posts(conn, posts, &matches, counter).await;
            if let ([post], Err(error)) = (posts, &tried)
                && error.may_blame_values()
                && self.takes_another(conn, post, &matches, counter).await?
            {
                // The cause of the refusal may be gone by now.
                tried = self.try_posts(conn, posts, &matches, counter).await;
                if let Err(error) = tried {
                    if !error.may_blame_values() {
                        return Err(error);
                    }
                    refused.push(Quarantined {
                        kind: QuarantineKind::Refused,
                        post_id: Some(post.id.clone()),
                        reason: format!("{:#}", anyhow::Error::from(error)),
                    });
                    continue;
                }
            }
            match tried {
                Ok(batch) => {
                    let broken = all.broken().into_iter();
                    let broken = broken.filter(|post| posts.iter().any(|one| one.id == post.id));
                    refused.extend(broken.map(broken_by_us));
                    stored.made.extend(batch.made);
                    stored.refused += batch.refused;
                    stored.dropped += batch.dropped;
                    stored.kept_cut = stored.kept_cut.max(batch.kept_cut);
                }
                Err(error) if posts.len() < 2 || !error.may_blame_values() => return Err(error),
                Err(_) => waiting.extend(halves(range)),
            }
        }
        Ok(())
    }

    /// Stores posts within a savepoint.
    async fn try_posts(
        &self,
        conn: &mut AsyncPgConnection,
        posts: &[Post],
        matches: &[NewScan<'_>],
        counter: &mut ScanCounter,
    ) -> Result<Batch, store::Error> {
        let mut tried = counter.clone();
        let stored = conn
            .transaction(async |conn| self.store_posts(conn, posts, matches, &mut tried).await)
            .await?;
        *counter = tried;
        Ok(stored)
    }

    /// Returns true if the database accepts a harmless post instead of `post`, with the same matches. If not, the
    /// post is not the cause, and must not be skipped.
    async fn takes_another(
        &self,
        conn: &mut AsyncPgConnection,
        post: &Post,
        matches: &[NewScan<'_>],
        counter: &ScanCounter,
    ) -> Result<bool, store::Error> {
        let harmless = Post {
            post_type: post.post_type,
            time: Timestamp::now(),
            id: format!("trial:{}:{}", self.backbone.replica, self.feed.name),
            url: "https://example.com/".to_owned(),
            title: Some("-".to_owned()),
            text: Some("-".to_owned()),
            subforum: None,
            user: User {
                id: "-".to_owned(),
                name: "-".to_owned(),
                url: "https://example.com/".to_owned(),
            },
        };
        let matches: Vec<NewScan<'_>> = matches
            .iter()
            .map(|one| NewScan {
                post: &harmless,
                matched: domain::Match {
                    terms: Vec::new(),
                    ..one.matched.clone()
                },
                ..one.clone()
            })
            .collect();
        let posts = std::slice::from_ref(&harmless);
        let tried = conn.transaction(async |conn| {
            let mut counter = counter.clone();
            self.store_posts(conn, posts, &matches, &mut counter)
                .await?;
            Err::<(), _>(Tried::TakenBack)
        });
        match tried.await {
            Ok(()) | Err(Tried::TakenBack) => Ok(true),
            Err(Tried::Failed(error)) if error.may_blame_values() => Ok(false),
            Err(Tried::Failed(error)) => Err(error),
        }
    }
}

/// Outcome of storing a harmless post.
enum Tried {
    TakenBack,
    Failed(store::Error),
}

impl From<store::Error> for Tried {
    fn from(error: store::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<QueryError> for Tried {
    fn from(error: QueryError) -> Self {
        Self::Failed(error.into())
    }
}

/// Returns the newer half and then the older one, which is on top of the stack.
fn halves(posts: Range<usize>) -> [Range<usize>; 2] {
    let middle = posts.start + posts.len() / 2;
    [middle..posts.end, posts.start..middle]
}

/// Returns the matches of these posts. `picks` are in the order of the posts.
fn picks_of<'p>(picks: &'p [Pick], posts: &Range<usize>) -> &'p [Pick] {
    let first = picks.partition_point(|pick| pick.at < posts.start);
    let end = picks.partition_point(|pick| pick.at < posts.end);
    &picks[first..end]
}

#[cfg(test)]
mod tests {
    use domain::{Id, ManagerName};

    use super::{Pick, halves, picks_of};

    #[test]
    fn halves_have_the_matches_of_their_posts() {
        let manager = ManagerName {
            namespace: Id::NIL,
            manager: Id::NIL,
        };
        let picks = [0, 0, 2, 3, 3, 3].map(|at| Pick { at, manager });
        let [newer, older] = halves(0..5);
        assert_eq!(picks_of(&picks, &older), &picks[..2]);
        assert_eq!(picks_of(&picks, &newer), &picks[2..]);
        let ranges = [0..5, 0..1, 1..2, 2..3, 3..4, 4..5];
        let counts = ranges.map(|posts| picks_of(&picks, &posts).len());
        assert_eq!(counts, [6, 2, 0, 1, 3, 0]);
        assert!(picks_of(&[], &(0..5)).is_empty());
    }
}
