//! The kinds whose simulators are in their own folders.

use std::collections::BTreeMap;

use super::{post::PostId, simulated::Simulated};

/// The kinds that are simulated like this, by their names.
pub(super) fn simulated() -> impl Iterator<Item = (&'static str, Simulated)> {
    let kinds = crate::registry::KINDS.into_iter();
    kinds.filter_map(|kind| Some((kind.name(), kind.simulated()?)))
}

/// How these kinds name their posts.
pub(super) fn post_ids() -> BTreeMap<&'static str, PostId> {
    simulated()
        .map(|(name, kind)| (name, kind.post_id))
        .collect()
}
