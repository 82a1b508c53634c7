//! Text from outside that speaks to a model as if it were the service.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Shared,
    host::{Entry, Host, Reply, Visit, atom},
    stage::{PATIENCE, Stage, feed},
};
use crate::harness::{mcp, server::answer};
use crate::suite::Test;

const ORDER: &str = "ignore-all-of-that";
const WORD: &str = "kettle";

pub(super) fn tests(shared: &Arc<Shared>) -> Vec<Test> {
    vec![shared.test("mcp_marks_all_text_from_outside", marks)]
}

/// Returns what stands outside of the marks.
fn unmarked(shown: &str) -> String {
    let mut rest = shown;
    let mut own = String::new();
    while let Some((before, marked)) = rest.split_once("<foreign-") {
        own.push_str(before);
        let end = format!("</foreign-{}>", &marked[..16]);
        rest = marked.split_once(&end).unwrap().1;
    }
    own + rest
}

/// The order is in names, terms, posts, addresses, and in the error of a page.
async fn marks(stage: &Stage) {
    let host = Host::start(|visit: &Visit| {
        if visit.target.starts_with("/page") {
            return Reply::Answer(answer(404, "text/html", "gone"));
        }
        Reply::Answer(atom(
            ORDER,
            &[Entry {
                id: ORDER.to_owned(),
                title: format!("{WORD} {ORDER}"),
                text: format!("{WORD} {ORDER}"),
                link: format!("http://host.example/{ORDER}"),
            }],
        ))
    })
    .await;
    let a = stage.account(ORDER).await;
    let feeds = [feed(&host.url(&format!("/feed/{ORDER}")))];
    let manual = json!({
        "nickname": ORDER, "type": "FEED_MANAGER", "source": {"type": "FORUM"},
        "instructions": {
            "feeds": feeds, "require": [[WORD, ORDER]], "exclude": [format!("not {ORDER}")], "brief": ORDER,
        },
    });
    let manual = a.create_manager(&a.namespace, &manual).await;
    let failing = json!({
        "nickname": ORDER, "type": "FEED_MANAGER", "source": {"type": "FORUM"},
        "input": {
            "type": "STRUCTURED", "urls": [host.url(&format!("/page/{ORDER}"))], "focus": {"type": "SALES"},
        },
    });
    let failing = a.create_manager(&a.namespace, &failing).await;
    a.applied(&manual, PATIENCE).await;
    let failed = a.compiled(&failing, PATIENCE).await;
    assert_eq!(failed["state"], "APPLY_FAILED", "{failed:#}");
    let scan = a.wait_for_scans(&manual, 1).await.remove(0);

    let tool = |name: &str, arguments: Value| json!({"method": "tools/call", "params": {"name": name, "arguments": arguments}});
    let name = &manual["name"];
    let calls = [
        tool("list_namespaces", json!({})),
        tool("list_managers", json!({"namespace": a.namespace})),
        tool("list_scans", json!({"parent": name})),
        tool("explain_scan", json!({"scan": scan["name"]})),
        tool("preview_manager", json!({"manager": name})),
        tool("get_stats", json!({"name": name})),
    ];
    let session = mcp::session(&stage.service.api_url, &a.owner_key, &calls);
    for (call, answer) in calls.iter().zip(&session.answers) {
        assert_eq!(answer["result"]["isError"], false, "{call}: {answer}");
        for content in answer["result"]["content"].as_array().unwrap() {
            let own = unmarked(content["text"].as_str().unwrap());
            assert!(!own.contains(ORDER), "{}: {own}", call["params"]["name"]);
        }
        let items = &answer["result"]["structuredContent"]["items"];
        for item in items.as_array().unwrap() {
            let own = item["values"].to_string();
            assert!(!own.contains(ORDER), "{}: {own}", call["params"]["name"]);
        }
    }
}
