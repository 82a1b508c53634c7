//! The webhook that a receiver gets: the body of an event, and its signature.
//!
//! The dispatcher and `earshot listen` send the same, so a receiver that works with one works with the other.

mod sign;

use domain::{Post, ScanName};
use serde::Serialize;

pub use sign::headers as signature_headers;

/// SPEC.md part 6.
#[derive(Serialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    event_type: &'static str,
    name: ScanName,
    post: &'a Post,
}

/// The body of a Scan's event, the same at each attempt.
///
/// # Errors
/// Never for a post that was parsed from JSON.
pub fn body(name: ScanName, post: &Post) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&Event {
        event_type: "SCAN",
        name,
        post,
    })
}
