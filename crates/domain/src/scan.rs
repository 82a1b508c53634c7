//! Scans: posts that a Manager found worth the customer's attention.

use serde::{Deserialize, Serialize};

use crate::{Focus, Post, ScanName, Timestamp};

/// A matched post, as clients see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scan {
    pub name: ScanName,
    pub create_time: Timestamp,
    pub update_time: Timestamp,
    pub post: Post,
    /// The verdict: true at creation, the customer's once they set it.
    pub value: bool,
    #[serde(rename = "match")]
    pub matched: Match,
}

/// Why a post matched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Match {
    /// With a focus: calibrated, 0 to 1. Without: the sum of the weights of the terms that occur.
    pub score: f64,
    /// The terms and names that counted, strongest first.
    pub terms: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<Focus>,
}
