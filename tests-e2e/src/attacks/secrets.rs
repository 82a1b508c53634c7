//! Secrets of customers in what operators see: tokens in addresses of feeds.

use std::sync::Arc;

use super::{
    Shared,
    host::{Entry, Host, Reply, Visit, atom},
    stage::{PATIENCE, Stage, feed},
};
use crate::harness::{eventually, server::answer};
use crate::suite::Test;

const TOKEN: &str = "token-8a13f0be";
const WORD: &str = "kettle";

pub(super) fn tests(shared: &Arc<Shared>) -> Vec<Test> {
    let name = "token_of_a_feed_is_in_no_log_line_and_no_span";
    vec![shared.test(name, logs)]
}

/// Serves a feed whose entries have ids that hold in it alone, and one that fails.
fn site(visit: &Visit) -> Reply {
    if visit.target.starts_with("/failing") {
        return Reply::Answer(answer(500, "text/plain", "failed"));
    }
    let entry = Entry {
        id: "entry-1".to_owned(),
        title: format!("{WORD} 1"),
        text: format!("A {WORD}."),
        link: String::new(),
    };
    Reply::Answer(atom("kettles", &[entry]))
}

async fn logs(stage: &Stage) {
    let host = Host::start(site).await;
    let a = stage.account("a").await;
    let feeds = ["/feed", "/failing"].map(|path| {
        let url = host.url(&format!("{path}?token={TOKEN}"));
        feed(&url)
    });
    let manager = a.watch(&feeds, WORD, &[]).await;
    a.wait_for_scans(&manager, 1).await;
    let mut spans = Vec::new();
    eventually("spans of polls, and a failed one", PATIENCE, async || {
        spans.extend(stage.service.spans());
        let is_polled = spans.iter().any(|span| span.contains("poll feed"));
        (is_polled && host.count("/failing") >= 2).then_some(())
    })
    .await;
    for line in stage.service.log().lines() {
        assert!(!line.contains(TOKEN), "log: {line}");
    }
    for span in &spans {
        assert!(!span.contains(TOKEN), "span: {span}");
    }
}
