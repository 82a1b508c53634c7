//! Stores the posts of a poll in halves, if the database refuses them together.
//!
//! All halves are in one transaction, with a savepoint each. Refused posts are recorded as quarantined, and the
//! other posts, the records and the cursor are committed together. So a crash loses nothing, and no post counts
//! twice.

use std::{ops::Range, sync::Arc};

use domain::{ManagerName, Post, Timestamp, User};
use store::{
    AsyncConnection as _, AsyncPgConnection, QueryError,
    feeds::{QuarantineKind, Quarantined},
    keyed,
    scans::{NewScan, ScanCounter},
};

use super::{
    commit::{BLOCK, Batch, Found, Stored, broken_by_us},
    context::Poll,
};
use crate::find::{Matches, Pick};

/// A failure that is no constraint violation is attributed to a post only after this many in a row.
const FAILURES: u32 = 2;

impl Poll {
    /// Returns true if one post may be the reason why a poll could not be stored.
    pub(super) fn may_be_of_a_post(&self, error: &store::Error) -> bool {
        let is_settled = error.is_refusal() || self.feed.failure_count >= FAILURES;
        is_settled && error.may_blame_values()
    }

    /// Stores what can be stored, and quarantines the posts that the database refuses.
    pub(super) async fn commit_apart(&self, found: &Found<'_>) -> Result<Stored, store::Error> {
        let wanted = |_: &ManagerName, post: &Post| self.is_wanted(post);
        let (plans, index) = (&self.plans, Arc::clone(found.index));
        let (feed, posts) = (&self.feed.name, &found.polled.posts);
        let all = Matches::of(plans, index, self.account, feed, posts, wanted).await;
        // The transaction holds the feed's lock, so nothing is read and no model asked in it.
        all.decide_all(plans, BLOCK, || false).await;
        let _share = self.limits.connections.take(self.account, 1).await;
        let mut conn = self.backbone.pool.get().await?;
        keyed::begin(&mut conn).await?;
        let stored = async {
            let conn = &mut *conn;
            if let Some(lost) = self.check(conn, found).await? {
                return Ok(lost);
            }
            let mut counter = self.counter(found);
            let (batch, refused) = self.store_halves(conn, &all, &mut counter).await?;
            self.finish(conn, found, batch, refused, counter).await
        };
        let stored = stored.await;
        keyed::end(&mut conn, stored).await
    }

    async fn store_halves(
        &self,
        conn: &mut AsyncPgConnection,
        all: &Matches<'_, impl Fn(&ManagerName, &Post) -> bool>,
        counter: &mut ScanCounter,
    ) -> Result<(Batch, Vec<Quarantined>), store::Error> {
        let mut stored = Batch::default();
        let mut refused = Vec::new();
        let every_pick = all.picks();
        // The oldest posts on top.
        let whole = 0..all.posts().len();
        let mut waiting = vec![whole];
        while let Some(range) = waiting.pop() {
            let posts = &all.posts()[range.clone()];
            let of_range = every_pick.iter().filter(|pick| range.contains(&pick.at));
            let picks: Vec<Pick> = of_range.copied().collect();
            if picks.len() > BLOCK && posts.len() > 1 {
                waiting.extend(halves(range));
                continue;
            }
            let matches = all.decide_few(&self.plans, &picks).await;
            match self.try_posts(conn, posts, &matches, counter).await {
                Ok(batch) => {
                    let broken = all.broken().into_iter();
                    let broken = broken.filter(|post| posts.iter().any(|one| one.id == post.id));
                    refused.extend(broken.map(broken_by_us));
                    stored.made.extend(batch.made);
                    stored.refused += batch.refused;
                    stored.dropped += batch.dropped;
                    stored.kept_cut = stored.kept_cut.max(batch.kept_cut);
                }
                Err(error) if posts.is_empty() || !error.may_blame_values() => return Err(error),
                Err(error) => {
                    let [post] = posts else {
                        waiting.extend(halves(range));
                        continue;
                    };
                    if !self.takes_another(conn, post, &matches, counter).await? {
                        return Err(error);
                    }
                    refused.push(Quarantined {
                        kind: QuarantineKind::Refused,
                        post_id: Some(post.id.clone()),
                        reason: format!("{:#}", anyhow::Error::from(error)),
                    });
                }
            }
        }
        Ok((stored, refused))
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

/// How the trial of a harmless post ended.
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

/// The newer half, and the older one, which comes first from the end.
fn halves(posts: Range<usize>) -> [Range<usize>; 2] {
    let middle = posts.start + posts.len() / 2;
    [middle..posts.end, posts.start..middle]
}
