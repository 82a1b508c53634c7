//! Accounts for the ids of a platform that numbers its items without gaps.
//!
//! The account moves with the cursor, and posts found on the way are stored with the poll. So a crash loses none
//! and counts none twice.

use std::time::Duration;

use platforms::{IdAccount, Polled};
use store::feeds::IdCounts;

use super::late::Late;
use crate::{budget, poll::context::Poll};

const DEADLINE: Duration = Duration::from_secs(120);

impl Poll {
    /// Records the ids that `polled` read, and checks older ones if no post waits to be read. Adds the posts found
    /// to `polled` and to the late posts.
    pub(super) async fn account(&self, polled: &mut Polled, late: &mut Late) -> IdCounts {
        let adapter = &self.watched.platform.adapter;
        let what = self.feed.name.what();
        if !adapter.has_dense_ids(what) {
            return IdCounts::default();
        }
        let account = if polled.more {
            adapter.account(what, polled, false).await
        } else {
            // A check that ends too late must not change the cursor.
            let mut tried = polled.clone();
            let asked = adapter.account(what, &mut tried, true);
            let asked = budget::undertake(true, Some(&self.feed.name), asked);
            match tokio::time::timeout(DEADLINE, asked).await {
                Ok(account) => {
                    *polled = tried;
                    account
                }
                Err(_) => adapter.account(what, polled, false).await,
            }
        };
        let IdAccount {
            read,
            other,
            gone,
            missing,
            explained,
            up_to,
            posts,
            failure,
        } = account;
        if let Some(failure) = failure {
            polled.throttled = polled.throttled.or(failure.throttled());
            let error = format!("{:#}", anyhow::Error::from(failure));
            tracing::debug!(feed.name = %self.feed.name.masked(), error, "cannot account for ids");
        }
        late.posts += posts.len();
        polled.posts.extend(posts);
        polled.posts.sort_by_key(|post| post.time);
        IdCounts {
            read,
            other,
            gone,
            missing,
            explained,
            up_to,
        }
    }
}
