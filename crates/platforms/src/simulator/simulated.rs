//! The simulator of a kind of platform, if it is in the kind's own folder.

use super::{ask::Answer, post::PostId};

/// How a kind of platform is simulated whose simulator is in the kind's own folder.
pub struct Simulated {
    pub(crate) answer: Answer,
    /// The `Post.id` of a new post with the simulator's number.
    pub(crate) post_id: PostId,
}
