//! Input of requests without a key, and leaked keys.

use std::sync::Arc;

use http::Method;

use super::{
    Shared,
    stage::{PATIENCE, Stage},
};
use crate::harness::{api, eventually};
use crate::suite::Test;

/// Characters of the checksum at the end of a key.
const CHECKSUM: usize = 6;

pub(super) fn tests(shared: &Arc<Shared>) -> Vec<Test> {
    vec![
        shared.test(
            "trace_context_without_a_key_is_not_continued",
            trace_context,
        ),
        shared.test("keys_end_with_a_checksum", checksum),
    ]
}

async fn trace_context(stage: &Stage) {
    let a = stage.account("a").await;
    let [unknown, known] = [0xa1_u8, 0xb2].map(|byte| [byte; 16]);
    let header = |trace: [u8; 16]| {
        let id: String = trace.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("00-{id}-00f067aa01a902b7-01")
    };
    let url = format!("{}/v1/namespaces", stage.service.api_url);
    let (client, parent) = (api::client(), header(unknown));
    let headers = [("traceparent", parent.as_str())];
    let answer = api::send(&client, Method::GET, &url, &headers, None).await;
    assert_eq!(answer.status, 401);
    // That of a key that has worked before is continued, after the other's request.
    let parent = header(known);
    let headers = [("traceparent", parent.as_str())];
    let answer = a
        .request(Method::GET, "/v1/namespaces", &headers, None)
        .await;
    assert_eq!(answer.status, 200);
    let mut spans = String::new();
    let within = |spans: &str, trace: [u8; 16]| spans.contains(&format!("trace_id: {trace:?}"));
    eventually("the trace of the key", PATIENCE, async || {
        spans.push_str(&stage.service.spans().join("\n"));
        within(&spans, known).then_some(())
    })
    .await;
    assert!(
        !within(&spans, unknown),
        "a stranger chose a trace: {spans}"
    );
}

/// The checksum is the CRC-32 (IEEE 802.3) of the text before it, in URL-safe base64.
async fn checksum(stage: &Stage) {
    use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

    let key = stage.service.key("a", "VIEWER");
    let (body, checksum) = key.split_at(key.len() - CHECKSUM);
    let bytes = crc32fast::hash(body.as_bytes()).to_be_bytes();
    assert_eq!(checksum, BASE64_URL_SAFE_NO_PAD.encode(bytes));
}
