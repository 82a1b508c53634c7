//! Shared steps of the scenarios.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    customer,
    harness::{
        LOSS, Stack,
        receiver::{Delivery, Receiver},
        shape,
    },
};

pub(crate) const SECRET_HEADER: &str = "x-webhook-secret";
pub(crate) const SECRET: &str = "0pen sesame, but longer";
/// Deadline, on a busy machine, for steps that usually take a moment.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A customer with a Namespace and a Connection to a receiver.
pub(crate) struct Customer<'a> {
    pub(crate) stack: &'a Stack,
    pub(crate) namespace: String,
    pub(crate) connection: String,
    pub(crate) receiver: Receiver,
}

impl<'a> Customer<'a> {
    pub(crate) async fn new(stack: &'a Stack, nickname: &str, receiver: Receiver) -> Self {
        let namespace = stack.api.create_namespace(nickname).await;
        let headers = json!({SECRET_HEADER: SECRET});
        let connection = stack
            .api
            .create_connection(&namespace, &receiver.url(), headers)
            .await;
        Self {
            stack,
            namespace,
            connection,
            receiver,
        }
    }

    /// Creates Managers that match each post with `word`: of the forums, and of the blog.
    pub(crate) async fn watch_word(&self, word: &str) -> [Value; 2] {
        [
            self.watch_word_on("FORUM", word).await,
            self.watch_word_on("NETWORK", word).await,
        ]
    }

    async fn watch_word_on(&self, source: &str, word: &str) -> Value {
        let manager = customer::word_manager(source, word, &self.connection);
        let manager = self
            .stack
            .api
            .create_manager(&self.namespace, &manager)
            .await;
        assert_eq!(manager["mode"], "MANUAL");
        self.stack.api.applied(&manager, PATIENCE).await
    }

    /// Waits until all of these posts are Scans of the Managers; returns the Scans by `Post.id`.
    pub(crate) async fn scans_of(
        &self,
        managers: &[Value],
        posts: &BTreeSet<String>,
        within: Duration,
    ) -> BTreeMap<String, Value> {
        let what = format!("{} posts are scans", posts.len());
        let mut missing = 0;
        let scans = self.stack.eventually(&what, within, async || {
            let scans = scans_by_post(self.stack, managers).await;
            let left = posts
                .iter()
                .filter(|post| !scans.contains_key(*post))
                .count();
            if left != missing {
                missing = left;
                eprintln!("{left} of {} posts have not arrived yet", posts.len());
            }
            (left == 0).then_some(scans)
        });
        scans.await
    }

    /// Waits until each Scan was delivered.
    pub(crate) async fn delivered(&self, scans: &BTreeMap<String, Value>, within: Duration) {
        let what = format!("{} scans are delivered", scans.len());
        let delivered = self.stack.eventually(&what, within, async || {
            let counts = self.receiver.counts();
            let all = scans.values().all(|scan| counts.contains_key(name(scan)));
            all.then_some(())
        });
        delivered.await;
    }
}

/// Returns the Scans of all these Managers; no two may share a post or a name.
pub(crate) async fn scans_by_post(stack: &Stack, managers: &[Value]) -> BTreeMap<String, Value> {
    let mut names = BTreeSet::new();
    let mut posts = BTreeMap::new();
    for manager in managers {
        for scan in stack.api.scans(manager, 100).await {
            let post = scan["post"]["id"].as_str().unwrap().to_owned();
            let is_new = names.insert(name(&scan).to_owned());
            assert!(is_new, "{LOSS}listed twice: {scan}");
            let other = posts.insert(post, scan);
            assert!(other.is_none(), "{LOSS}two scans of one post: {other:?}");
        }
    }
    posts
}

pub(crate) fn name(resource: &Value) -> &str {
    resource["name"].as_str().unwrap()
}

/// Asserts the shape of SPEC.md 2.5, and of the additions in API.md.
#[track_caller]
pub(crate) fn assert_scan(scan: &Value, manager: &Value) {
    let fields = shape::keys(scan);
    assert_eq!(
        fields,
        [
            "createTime",
            "labels",
            "match",
            "name",
            "post",
            "updateTime",
            "value"
        ]
    );
    shape::assert_timestamp(&scan["createTime"]);
    shape::assert_timestamp(&scan["updateTime"]);
    shape::assert_post(&scan["post"]);
    assert_eq!(scan["value"], true);
    let parent = format!("{}/scans/", name(manager));
    assert!(name(scan).starts_with(&parent), "{scan}");
}

/// Asserts the shape of SPEC.md part 6.
#[track_caller]
pub(crate) fn assert_delivery(delivery: &Delivery, scan: &Value) {
    let expected = json!({"type": "SCAN", "name": scan["name"], "post": scan["post"]});
    assert_eq!(delivery.json(), expected);
    assert_eq!(delivery.method, "POST");
    assert_eq!(delivery.path, "/hooks/earshot?from=earshot");
    assert_eq!(delivery.header("content-type"), ["application/json"]);
    assert_eq!(delivery.header(SECRET_HEADER), [SECRET]);
    let length = delivery.body.len().to_string();
    assert_eq!(delivery.header("content-length"), [length.as_str()]);
    assert!(delivery.header("user-agent")[0].starts_with("Earshot/"));
}
