//! Secrets of customers in what others see: tokens in addresses of feeds, and addresses of Connections.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Shared,
    host::{Entry, Host, Reply, Visit, atom, ok},
    stage::{PATIENCE, Stage, feed},
};
use crate::harness::{api::Api, eventually, server::answer};
use crate::suite::Test;

const TOKEN: &str = "token-8a13f0be";
const WORD: &str = "kettle";

pub(super) fn tests(shared: &Arc<Shared>) -> Vec<Test> {
    vec![
        shared.test("token_of_a_feed_is_in_no_post", posts),
        shared.test("token_of_a_feed_is_in_no_log_line_and_no_span", logs),
        shared.test(
            "addresses_of_connections_are_sealed_in_the_database",
            sealed,
        ),
        shared.test("viewer_sees_scheme_and_host_of_a_connection", viewer),
        shared.test(
            "connections_are_not_found_by_parts_of_their_address",
            filter,
        ),
    ]
}

/// Serves a feed whose entries have ids that hold in it alone, and one that fails.
fn site(visit: &Visit) -> Reply {
    if visit.target.starts_with("/failing") {
        return Reply::Answer(answer(500, "text/plain", "failed"));
    }
    if visit.target.starts_with("/hook") {
        return ok();
    }
    let entry = Entry {
        id: "entry-1".to_owned(),
        title: format!("{WORD} 1"),
        text: format!("A {WORD}."),
        link: String::new(),
    };
    Reply::Answer(atom("kettles", &[entry]))
}

async fn posts(stage: &Stage) {
    let host = Host::start(site).await;
    let a = stage.account("a").await;
    let connection = a
        .create_connection(&a.namespace, &host.url("/hook"), json!({}))
        .await;
    let url = host.url(&format!("/feed?token={TOKEN}"));
    let manager = a.watch(&[feed(&url)], WORD, &[connection]).await;
    let scans = a.wait_for_scans(&manager, 1).await;
    assert!(
        !scans[0]["post"].to_string().contains(TOKEN),
        "{:#}",
        scans[0]
    );
    let webhook = eventually("a webhook", PATIENCE, async || {
        let mut visits = host.visits().into_iter();
        visits.find(|visit| visit.target.starts_with("/hook"))
    })
    .await;
    assert!(!webhook.body.contains(TOKEN), "{}", webhook.body);
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

/// Creates a Connection whose address is a secret, as that of a chat's incoming webhook.
async fn secret_connection(api: &Api, namespace: &str) -> (String, Value) {
    let url = format!("https://hooks.example.com/services/{TOKEN}?key={TOKEN}");
    let name = api.create_connection(namespace, &url, json!({})).await;
    let shown = api.get(&format!("/v1/{name}")).await.json();
    assert_eq!(shown["url"], url.as_str());
    (name, shown)
}

async fn sealed(stage: &Stage) {
    let a = stage.account("a").await;
    secret_connection(&a, &a.namespace).await;
    let rows = stage.service.query("SELECT c::text FROM connections c");
    assert!(rows.contains("receiver") && !rows.contains(TOKEN), "{rows}");
}

async fn viewer(stage: &Stage) {
    let a = stage.account("a").await;
    let (name, _) = secret_connection(&a, &a.namespace).await;
    let viewer = stage.viewer(&a);
    for path in [format!("/v1/{name}"), a.path("connections")] {
        let shown = viewer.get(&path).await.json().to_string();
        assert!(shown.contains("https://hooks.example.com"), "{shown}");
        assert!(!shown.contains(TOKEN), "{shown}");
    }
}

async fn filter(stage: &Stage) {
    let a = stage.account("a").await;
    secret_connection(&a, &a.namespace).await;
    let viewer = stage.viewer(&a);
    let path = a.path("connections");
    let answer = viewer
        .get(&format!("{path}?filter=url:%22{}%22", &TOKEN[..8]))
        .await;
    assert_eq!(answer.status, 400, "{}", answer.json());
}
