//! What a post says by itself to the gate, whatever the plan: the interface between the model and the index.
//!
//! The index leaves out plans whose gate a post cannot pass. It relies on this: the gate's sum never
//! falls when topic, own name or watched names rise, no post says more by itself than
//! [`Features::best`], and no term's saturation exceeds [`max_saturation`]. Whoever gives the model a
//! new feature of posts adds it here twice; the test of the index against asking every plan tells
//! when `best` is too low.

use domain::Focus;

use crate::{
    evidence::cues,
    heads,
    model::{self, Features},
    post::PostText,
};

impl Features {
    /// The part that is the post's own. Computed once a post, on first use.
    pub(crate) fn of_post(focus: Focus, post: &PostText) -> Self {
        Self {
            lexicon: f64::from(post.lexicon(focus)),
            head: post.head(focus),
            ..Self::default()
        }
    }

    /// As much as any post with this one's answers of the classifiers says, which its cues need not be looked for to
    /// know.
    pub(crate) fn of_heads(focus: Focus, post: &PostText) -> Self {
        Self {
            head: post.head(focus),
            ..Self::best(focus)
        }
    }

    /// As much as any post says by itself.
    pub(crate) fn best(_focus: Focus) -> Self {
        Self {
            lexicon: f64::from(cues::CAP),
            head: heads::MAX_ANSWER,
            ..Self::default()
        }
    }
}

/// No term of weight 1 adds more to the topic, in any post.
pub(crate) fn max_saturation() -> f64 {
    // The limit of a term that is all of a post, and a little more for rounding.
    model::saturated(1e12, 0) * 1.000_001
}
