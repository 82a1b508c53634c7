//! The operations, one file per collection.

use std::marker::PhantomData;

use domain::{
    ConnectionName, DeliveryName, ManagerName, NamespaceName, ReplayName, ScanName, name::Name,
};
use serde::Deserialize;

use crate::ApiError;

pub(crate) mod audit_events;
pub(crate) mod backfills;
pub(crate) mod caller;
pub(crate) mod connections;
pub(crate) mod deliveries;
pub(crate) mod docs;
pub(crate) mod documents;
pub(crate) mod feeds;
pub(crate) mod mail;
pub(crate) mod managers;
pub(crate) mod mcp;
pub(crate) mod namespaces;
pub(crate) mod previews;
pub(crate) mod replays;
pub(crate) mod scans;
pub(crate) mod stats;
pub(crate) mod trial_deliveries;

/// Ids in a path, kept as text until the handler needs the name. A malformed id is 404, and other checks come before
/// that.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct PathTo<N> {
    ids: Vec<String>,
    name: PhantomData<N>,
}

pub(crate) type NamespacePath = PathTo<NamespaceName>;
pub(crate) type ManagerPath = PathTo<ManagerName>;
pub(crate) type ConnectionPath = PathTo<ConnectionName>;
pub(crate) type ScanPath = PathTo<ScanName>;
pub(crate) type DeliveryPath = PathTo<DeliveryName>;
pub(crate) type ReplayPath = PathTo<ReplayName>;

impl<N: Name> PathTo<N> {
    pub(crate) fn namespace_id(&self) -> &str {
        self.ids.first().map_or("", String::as_str)
    }

    /// The last id, which may also be `-`.
    pub(crate) fn id(&self) -> &str {
        self.ids.last().map_or("", String::as_str)
    }

    /// Returns the name. Call after the check that the caller may use the Namespace.
    pub(crate) fn name(&self) -> Result<N, ApiError> {
        N::of_ids(&self.ids).map_err(ApiError::NotFound)
    }
}
