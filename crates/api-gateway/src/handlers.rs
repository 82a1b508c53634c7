//! The operations, one file per collection.

use serde::Deserialize;

pub(crate) mod audit_events;
pub(crate) mod backfills;
pub(crate) mod caller;
pub(crate) mod connection_tests;
pub(crate) mod connections;
pub(crate) mod deliveries;
pub(crate) mod docs;
pub(crate) mod documents;
pub(crate) mod feeds;
pub(crate) mod managers;
pub(crate) mod mcp;
pub(crate) mod namespaces;
pub(crate) mod previews;
pub(crate) mod replays;
pub(crate) mod scans;
pub(crate) mod stats;

/// Path parameters, kept as text until the handler needs them. A malformed id is 404, and other checks come before
/// that.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NamespacePath {
    namespace_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ManagerPath {
    namespace_id: String,
    manager_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConnectionPath {
    namespace_id: String,
    connection_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ScanPath {
    namespace_id: String,
    manager_id: String,
    scan_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeliveryPath {
    namespace_id: String,
    connection_id: String,
    delivery_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplayPath {
    namespace_id: String,
    connection_id: String,
    replay_id: String,
}
