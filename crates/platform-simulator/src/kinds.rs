//! The kinds that are registered by name.

use std::collections::BTreeMap;

use super::{lobsters, post::PostId, simulated::Simulated};

pub(super) fn simulated() -> impl Iterator<Item = (&'static str, Simulated)> {
    std::iter::once((lobsters::NAME, lobsters::SIMULATED))
}

/// How these kinds name their posts.
pub(super) fn post_ids() -> BTreeMap<&'static str, PostId> {
    simulated()
        .map(|(name, kind)| (name, kind.post_id))
        .collect()
}
