//! One account's posts in the answers of another.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Shared,
    host::{Entry, Host, Reply, Visit, atom, ok},
    stage::{Stage, feed},
};
use crate::suite::Test;

const TOKEN: &str = "token-3f9d20c1";
const WORD: &str = "kettle";

pub(super) fn tests(shared: &Arc<Shared>) -> Vec<Test> {
    vec![
        shared.test("feeds_on_one_host_keep_their_posts_apart", apart),
        shared.test(
            "preview_shows_no_posts_of_feeds_that_only_another_watches",
            preview,
        ),
    ]
}

/// Serves feeds whose entries have the same ids, as if they were posts of the host. The text names the path.
fn same_ids(visit: &Visit) -> Reply {
    let (Some(path), false) = (visit.target.split('?').next(), visit.target == "/hook") else {
        return ok();
    };
    let name = path.trim_start_matches('/').replace('/', "-");
    let host = visit.headers["host"].to_str().unwrap();
    let entry = |number: u32| Entry {
        id: format!("http://{host}/entry/{number}"),
        title: format!("{WORD} {number} from {name}"),
        text: format!("A {WORD} as {name} describes it."),
        link: format!("http://{host}/read/{number}?by={name}"),
    };
    Reply::Answer(atom(&name, &[entry(1), entry(2), entry(3)]))
}

/// B's feed lists the ids of A's posts: after them in one feed, and before them in the other.
async fn apart(stage: &Stage) {
    let host = Host::start(same_ids).await;
    let (a, b) = (stage.account("a").await, stage.account("b").await);
    for (first, second) in [(&a, &b), (&b, &a)] {
        let order = format!("order-{}", u8::from(std::ptr::eq(first, &a)));
        for (account, name) in [(first, "first"), (second, "second")] {
            let token = match name {
                "first" => format!("?token={TOKEN}"),
                _ => String::new(),
            };
            let url = host.url(&format!("/{order}/{name}{token}"));
            let manager = account.watch(&[feed(&url)], WORD, &[]).await;
            let scans = account.wait_for_scans(&manager, 3).await;
            for scan in &scans {
                let other = match name {
                    "first" => format!("{order}-second"),
                    _ => format!("{order}-first"),
                };
                let text = scan.to_string();
                assert!(text.contains(&format!("{order}-{name}")), "{scan:#}");
                assert!(
                    !text.contains(&other),
                    "{name} got a post of {other}: {scan:#}"
                );
                assert!(name == "first" || !text.contains(TOKEN), "{scan:#}");
            }
        }
    }
}

/// B knows the name of A's feed, and asks for its recent posts without ever having watched it.
async fn preview(stage: &Stage) {
    let host = Host::start(same_ids).await;
    let (a, b) = (stage.account("a").await, stage.account("b").await);
    let private = feed(&host.url(&format!("/private?token={TOKEN}")));
    let watching = a.watch(std::slice::from_ref(&private), WORD, &[]).await;
    a.wait_for_scans(&watching, 3).await;
    let own = feed(&host.url("/own"));
    let manager = b.watch(std::slice::from_ref(&own), WORD, &[]).await;
    b.wait_for_scans(&manager, 3).await;

    let path = format!("/v1/{}:preview", manager["name"].as_str().unwrap());
    let recent = async |feeds: &[&String]| -> Value {
        let body = json!({"recent": 30, "instructions": {"feeds": feeds, "require": [[WORD]]}});
        let answer = b.post(&path, &body).await;
        answer.json()
    };
    // The same request for the own feed has posts.
    let shown = recent(&[&own]).await;
    assert!(shown.to_string().contains("from own"), "{shown:#}");
    let shown = recent(&[&private]).await;
    assert!(!shown.to_string().contains("from private"), "{shown:#}");
}
