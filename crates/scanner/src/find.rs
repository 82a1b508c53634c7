//! Posts against all plans.

use domain::{FeedName, ManagerName, Post, Timestamp};
use matching::{Candidate, Index, Kept, PostText};
use store::scans::NewScan;
use tracing::field::Empty;

use crate::{metrics, plans::Plans};

/// Returns the matches of these posts of `feed`, in the posts' order, for the Managers that `wanted` selects.
pub(crate) fn find<'a>(
    plans: &Plans,
    index: &Index,
    feed: &FeedName,
    posts: &'a [Post],
    wanted: impl Fn(&ManagerName, &Post) -> bool,
) -> Vec<NewScan<'a>> {
    let span = tracing::info_span!("match posts", posts = posts.len(), matches = Empty);
    let _span = span.enter();
    let _timer = metrics::MATCH_DURATION.start_timer();
    let now = Timestamp::now();
    let mut matches = Vec::new();
    for post in posts {
        let text = PostText::from(post);
        let candidate = Candidate::new(post, &text);
        for (manager, decision) in index.matches(&text, feed) {
            if !wanted(&manager, post) {
                continue;
            }
            let kept = plans.screens().keep_out(&manager, &candidate, now);
            if let Some(kept) = kept {
                let reason = match kept {
                    Kept::Muted => "muted",
                    Kept::Language => "language",
                };
                metrics::SCREENED.with_label_values(&[reason]).inc();
                continue;
            }
            matches.push(NewScan {
                manager,
                post,
                matched: matching::explain(decision, &text),
            });
        }
    }
    span.record("matches", matches.len());
    matches
}
