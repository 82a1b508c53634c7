//! Features of a post for the gate that do not depend on the plan: the interface between the model and the index.
//!
//! The index leaves out plans whose gate a post cannot pass. It relies on this: the gate's sum never falls when topic,
//! own name or watched names rise, no post's own features exceed [`Features::best`], and no term's saturation exceeds
//! [`max_saturation`]. A new feature of posts must be added here twice. The test that compares the index with
//! evaluating every plan fails when `best` is too low.

use domain::Focus;

use crate::{
    evidence::cues,
    heads,
    model::{self, Features},
    post::PostText,
};

impl Features {
    /// Returns the features that depend only on the post. Computed once per post, on first use.
    pub(crate) fn of_post(focus: Focus, post: &PostText) -> Self {
        Self {
            lexicon: f64::from(post.lexicon(focus)),
            head: post.head(focus),
            ..Self::default()
        }
    }

    /// Returns an upper bound for posts with this post's classifier answers. It does not need the post's cues.
    pub(crate) fn of_heads(focus: Focus, post: &PostText) -> Self {
        Self {
            head: post.head(focus),
            ..Self::best(focus)
        }
    }

    /// Returns an upper bound for any post.
    pub(crate) fn best(_focus: Focus) -> Self {
        Self {
            lexicon: f64::from(cues::CAP),
            head: heads::MAX_ANSWER,
            ..Self::default()
        }
    }
}

/// Upper bound of what a term of weight 1 adds to the topic, in any post.
pub(crate) fn max_saturation() -> f64 {
    // The limit for a term that makes up a whole post, plus a margin for rounding.
    model::saturated(1e12, 0) * 1.000_001
}
