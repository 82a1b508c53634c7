//! Third step of a poll: matches its posts against the plans. All matches of a poll can take a gigabyte, so they are
//! found and committed in parts.

use std::{collections::HashSet, sync::Arc};

use domain::{Id, ManagerName, Post};
use matching::Index;
use store::feeds::{QuarantineKind, Quarantined};

use super::context::Poll;
use crate::find::Matches;

/// Matches of a part of a poll's posts.
pub(super) struct MatchedPart<'a, W> {
    pub(super) matches: Matches<'a, W>,
    /// The posts of this part and of those after it.
    posts: &'a [Post],
    /// Posts of earlier parts that could not be matched.
    broken_before: Vec<Quarantined>,
}

impl Poll {
    /// Matches the first of these posts: all, or as many as a part has.
    pub(super) async fn match_part<'a>(
        &'a self,
        posts: &'a [Post],
        broken_before: Vec<Quarantined>,
    ) -> MatchedPart<'a, impl Fn(&ManagerName, &Post) -> bool> {
        let (index, used_up) = (self.plans.index(), self.limits.used_up.namespaces());
        MatchedPart {
            matches: self.matches_of(posts, index, used_up).await,
            posts,
            broken_before,
        }
    }

    /// Matches the first of these posts against the plans of `index`.
    pub(super) async fn matches_of<'a>(
        &'a self,
        posts: &'a [Post],
        index: Arc<Index>,
        used_up: Arc<HashSet<Id>>,
    ) -> Matches<'a, impl Fn(&ManagerName, &Post) -> bool> {
        let (plans, feed) = (&self.plans, &self.feed.name);
        let wanted = move |_: &ManagerName, post: &Post| self.is_wanted(post);
        Matches::of_first(plans, index, self.account, feed, posts, wanted, used_up).await
    }
}

impl<'a, W: Fn(&ManagerName, &Post) -> bool> MatchedPart<'a, W> {
    pub(super) fn is_last(&self) -> bool {
        self.matches.posts().len() == self.posts.len()
    }

    /// Returns all posts of the poll so far that could not be matched.
    pub(super) fn broken(&self) -> Vec<Quarantined> {
        let broken = self.matches.broken().into_iter().map(broken_by_us);
        self.broken_before.iter().cloned().chain(broken).collect()
    }

    /// Returns the posts after this part.
    pub(super) fn rest(&self) -> &'a [Post] {
        &self.posts[self.matches.posts().len()..]
    }
}

/// Returns the record of a post whose matching panicked. The panic itself is in the log.
pub(super) fn broken_by_us(post: &Post) -> Quarantined {
    Quarantined {
        kind: QuarantineKind::Unreadable,
        post_id: Some(post.id.clone()),
        reason: "an internal error".to_owned(),
    }
}
