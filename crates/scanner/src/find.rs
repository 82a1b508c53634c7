//! Matches posts against all plans.
//!
//! A transaction that finds changed plans stores nothing, and the posts are matched again. [`Matches`] then only
//! matches the changed plans: with many customers there is a change every second, and a large poll would otherwise
//! never be stored.

use std::{collections::HashSet, ptr, sync::Arc};

use domain::{FeedName, ManagerName, Post, Timestamp};
use matching::{Candidate, Index, Kept, PostText};
use store::scans::NewScan;
use tracing::field::Empty;

use crate::{
    metrics,
    plans::{PlanChanges, Plans},
};

/// Matches of posts, brought up to date as plans change.
pub(crate) struct Matches<'a, W> {
    feed: &'a FeedName,
    posts: &'a [Post],
    /// Selects Managers.
    wanted: W,
    index: Arc<Index>,
    /// In the order of the posts. Muted matches stay here, because a Namespace may remove a mute.
    found: Vec<Found<'a>>,
    /// Matches that an earlier transaction stored.
    stored: HashSet<(ManagerName, usize)>,
}

struct Found<'a> {
    /// Position of the post.
    at: usize,
    scan: NewScan<'a>,
    is_kept_out: bool,
}

impl<'a, W: Fn(&ManagerName, &Post) -> bool> Matches<'a, W> {
    /// Matches `posts` of `feed` against the plans of `index` that `wanted` selects.
    pub(crate) fn of(
        plans: &Plans,
        index: Arc<Index>,
        feed: &'a FeedName,
        posts: &'a [Post],
        wanted: W,
    ) -> Self {
        let found = search(plans, &index, feed, posts, &wanted);
        Self {
            feed,
            posts,
            wanted,
            index,
            found,
            stored: HashSet::new(),
        }
    }

    /// The index whose matches these are.
    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// Returns the matches to store, in the order of the posts.
    pub(crate) fn new_scans(&self) -> Vec<NewScan<'a>> {
        let new = self.found.iter().filter(|found| {
            !found.is_kept_out && !self.stored.contains(&(found.scan.manager, found.at))
        });
        new.map(|found| found.scan.clone()).collect()
    }

    pub(crate) fn note_stored(&mut self, scans: &[NewScan<'_>]) {
        // Both are in the order of the posts.
        let mut posts = self.posts.iter().enumerate().peekable();
        for scan in scans {
            while posts
                .next_if(|(_, post)| !ptr::eq(*post, scan.post))
                .is_some()
            {}
            let at = posts.peek().map(|(at, _)| *at);
            self.stored.extend(at.map(|at| (scan.manager, at)));
        }
    }

    /// Updates the matches to the current index. Returns the number of plans that were matched for it; `None` if
    /// all were.
    pub(crate) fn update(&mut self, plans: &Plans) -> Option<usize> {
        let index = plans.index();
        let Some(changes) = plans.changes_between(self.index.version(), index.version()) else {
            self.found = search(plans, &index, self.feed, self.posts, &self.wanted);
            self.index = index;
            return None;
        };
        let PlanChanges {
            managers,
            namespaces,
        } = changes;
        self.found
            .retain(|found| !managers.contains(&found.scan.manager));
        let changed = managers.iter().filter_map(|name| {
            let plan = index.plan(name)?;
            plan.watches(self.feed).then(|| (*name, Arc::new(plan)))
        });
        let changed = Index::build(changed, index.version());
        if !changed.is_empty() {
            let found = search(plans, &changed, self.feed, self.posts, &self.wanted);
            self.found.extend(found);
            self.found
                .sort_by_key(|found| (found.at, found.scan.manager));
        }
        for found in &mut self.found {
            if namespaces.contains(&found.scan.manager.namespace) {
                let text = PostText::from(found.scan.post);
                let candidate = Candidate::new(found.scan.post, &text);
                found.is_kept_out = keep_out(plans, &found.scan.manager, &candidate);
            }
        }
        self.index = index;
        Some(changed.len())
    }
}

fn search<'a>(
    plans: &Plans,
    index: &Index,
    feed: &FeedName,
    posts: &'a [Post],
    wanted: impl Fn(&ManagerName, &Post) -> bool,
) -> Vec<Found<'a>> {
    let span = tracing::info_span!("match posts", posts = posts.len(), matches = Empty);
    let _span = span.enter();
    let _timer = metrics::MATCH_DURATION.start_timer();
    let mut matches = Vec::new();
    for (at, post) in posts.iter().enumerate() {
        let text = PostText::from(post);
        let candidate = Candidate::new(post, &text);
        for (manager, decision) in index.matches(&text, feed) {
            if !wanted(&manager, post) {
                continue;
            }
            matches.push(Found {
                at,
                is_kept_out: keep_out(plans, &manager, &candidate),
                scan: NewScan {
                    manager,
                    post,
                    matched: matching::explain(decision, &text),
                },
            });
        }
    }
    span.record("matches", matches.len());
    matches
}

fn keep_out(plans: &Plans, manager: &ManagerName, candidate: &Candidate<'_>) -> bool {
    let kept = plans
        .screens()
        .keep_out(manager, candidate, Timestamp::now());
    if let Some(kept) = kept {
        let reason = match kept {
            Kept::Muted => "muted",
            Kept::Language => "language",
        };
        metrics::SCREENED.with_label_values(&[reason]).inc();
    }
    kept.is_some()
}

#[cfg(test)]
mod tests;
