//! The simulator of a kind of platform that is registered by name.

use super::{ask::Answer, post::PostId};

/// Simulator of a kind of platform.
pub(crate) struct Simulated {
    pub(crate) answer: Answer,
    /// The `Post.id` of a new post with the simulator's number.
    pub(crate) post_id: PostId,
}
