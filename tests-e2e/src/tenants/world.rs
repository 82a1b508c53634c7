//! The two accounts, and their operations.

use std::{collections::BTreeMap, fmt::Write, time::Duration};

use serde_json::{Value, json};

use super::{
    canary::Side,
    document::{self, Operation},
    estate::{Estate, Page, keep},
    hosts::Hosts,
    mcp,
    requests::{Maker, Request, Target},
    watch::{Channel, Leak, Watch},
};
use crate::{
    chance::Chance,
    harness::{
        api::{Answer, Api},
        config,
        service::Service,
    },
};

/// One post is published after so many requests.
const PUBLISH_EVERY: u64 = 10;
/// The metrics are read after so many requests.
const METRICS_EVERY: u64 = 25;
/// Kinds of canaries that their owner must have seen. Otherwise a field was not used, and could not have leaked.
const SEEN: [&str; 29] = [
    "account",
    "alias",
    "brief",
    "competitor",
    "connectionnickname",
    "entryauthor",
    "entrylink",
    "entrytext",
    "entrytitle",
    "etag",
    "excluded",
    "feedtitle",
    "feedtoken",
    "header",
    "hookpath",
    "hookquery",
    "label",
    "managermute",
    "managernickname",
    "name",
    "namespacemute",
    "namespacenickname",
    "offer",
    "pagetoken",
    "product",
    "receiveranswer",
    "related",
    "required",
    "term",
];

/// A request to make.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// Index of the operation.
    operation: usize,
    side: Side,
    target: Target,
    /// True for a request that should succeed: the OWNER's, without options.
    is_plain: bool,
}

pub(super) struct World {
    service: Service,
    hosts: Hosts,
    operations: Vec<Operation>,
    estates: [Estate; 2],
    owner_keys: Vec<String>,
    pub(super) watch: Watch,
    chance: Chance,
    requests: u64,
    /// Number of successful requests for each operation that was requested.
    successes: BTreeMap<(String, Side, Target), u64>,
}

impl World {
    /// Starts the service, and gives both accounts the resources that every later request builds on.
    pub(super) async fn start(seed: u64) -> Self {
        let service = Service::start(settings).await;
        let mut watch = Watch::default();
        let mut owner_keys = Vec::new();
        let estates = Side::BOTH.map(|side| {
            let account = side.content("account", 1);
            let keys = ["OWNER", "EDITOR", "VIEWER"].map(|role| service.key(&account, role));
            keys.iter().for_each(|key| watch.add_key(side, key));
            owner_keys.push(keys[0].clone());
            // A busy machine may not serve each request in time.
            let api = |key: String| Api::new(&service.api_url, &key).patient();
            Estate::new(side, keys.map(api))
        });
        let operations = document::operations(&service.document().await);
        let mut world = Self {
            service,
            hosts: Hosts::start().await,
            operations,
            estates,
            owner_keys,
            watch,
            chance: Chance::new(seed),
            requests: 0,
            successes: BTreeMap::new(),
        };
        world.publish().await;
        let mut sides = Side::BOTH;
        world.chance.shuffle(&mut sides);
        for side in sides {
            for operation in ["createNamespace", "createConnection", "createConnection"] {
                world.call(operation, side).await;
            }
            // Three with instructions, one with pages.
            for _ in 0..4 {
                world.call("createManager", side).await;
            }
        }
        for side in sides {
            world.find_delivery(side).await;
            world.call("replayDeliveries", side).await;
        }
        world
    }

    /// Waits until an account knows a Scan and a delivery.
    async fn find_delivery(&mut self, side: Side) {
        for _ in 0..600 {
            self.publish().await;
            for operation in ["listDeliveries", "listScans"] {
                self.call(operation, side).await;
            }
            let estate = &self.estates[side.index()];
            if !estate.all("deliveries").is_empty() && !estate.all("scans").is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{side:?} got no Scan and delivery");
    }

    /// Returns the requests of a round, in random order. Those of the first round for own resources are plain.
    pub(super) fn deck(&mut self, is_first: bool) -> Vec<Step> {
        let mut deck = self.all_steps(is_first);
        self.chance.shuffle(&mut deck);
        deck
    }

    /// Returns four requests for every operation: of each account, for resources of each.
    fn all_steps(&self, is_plain: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        for operation in 0..self.operations.len() {
            for side in Side::BOTH {
                for target in [Target::Own, Target::Foreign] {
                    steps.push(Step {
                        operation,
                        side,
                        target,
                        is_plain: is_plain && target == Target::Own,
                    });
                }
            }
        }
        steps
    }

    /// Makes a request, and searches everything that has appeared.
    pub(super) async fn step(&mut self, step: Step) {
        self.request(step).await;
        if self.requests.is_multiple_of(PUBLISH_EVERY) {
            self.publish().await;
        }
        self.search().await;
    }

    /// Calls the tools of `earshot mcp`, with the OWNER's key of each account.
    pub(super) async fn use_tools(&mut self) {
        for side in Side::BOTH {
            self.find_delivery(side).await;
        }
        for side in Side::BOTH {
            let [own, other] = [side, side.other()].map(|side| &self.estates[side.index()]);
            let key = &self.owner_keys[side.index()];
            let session = mcp::session(&self.service.api_url, key, own, other);
            self.watch.session(side, &session);
        }
    }

    /// Makes a plain request.
    async fn call(&mut self, operation: &str, side: Side) {
        let mut all = self.operations.iter();
        let index = all.position(|one| one.id == operation).unwrap();
        let step = Step {
            operation: index,
            side,
            target: Target::Own,
            is_plain: true,
        };
        let status = self.request(step).await;
        // The resource may have been deleted with its parent.
        let is_read = operation.starts_with("get");
        assert!(
            is_read || matches!(status, Some(200..300)),
            "{operation}: {status:?}"
        );
    }

    /// Makes a request, searches the answer, and returns its status. Does nothing if no resource is there yet.
    async fn request(&mut self, step: Step) -> Option<u16> {
        let Step {
            operation,
            side,
            target,
            is_plain,
        } = step;
        let operation = &self.operations[operation];
        let [a, b] = &mut self.estates;
        let (own, other) = match side {
            Side::A => (a, &*b),
            Side::B => (b, &*a),
        };
        let mut maker = Maker {
            own,
            other,
            hosts: &self.hosts,
            chance: &mut self.chance,
            target,
            is_plain,
        };
        let request = maker.make(operation)?;
        let headers = request.headers.iter();
        let headers: Vec<(&str, &str)> = headers
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let body = request.body.as_ref().map(Value::to_string);
        let method = operation.method.clone();
        let api = &maker.own.keys[request.key];
        let answer = api.request(method, &request.target(), &headers, body).await;
        assert!(
            answer.status != 500,
            "{} {}: 500",
            operation.id,
            request.target()
        );
        self.requests += 1;
        let key = (operation.id.clone(), side, target);
        *self.successes.entry(key).or_default() += u64::from(answer.status < 300);
        if operation.needs_key {
            self.watch.answer(side, &request, &answer);
            learn(maker.own, operation, target, &request, &answer);
        }
        Some(answer.status)
    }

    /// Adds a post to every feed.
    async fn publish(&mut self) {
        self.hosts.publish();
        let number = self.requests;
        let post = json!({
            "platform": "hackernews", "title": format!("A kettle for everyone, {number}"), "author": "someone",
            "text": format!("Public news number {number} about kettles."),
        });
        self.service.simulator.publish(&[post]).await;
    }

    /// Searches everything that has appeared since the last call.
    async fn search(&mut self) {
        for visit in self.hosts.take() {
            self.watch.visit(&visit);
        }
        for line in self.service.log().lines() {
            self.watch.line(Channel::Log, line);
        }
        for span in self.service.spans() {
            self.watch.line(Channel::Trace, &span);
        }
        if self.requests.is_multiple_of(METRICS_EVERY) {
            let metrics = self.service.metrics().await;
            self.watch.metrics(&metrics);
        }
    }

    /// Waits until what the requests have started has reached the receivers and the collector, and makes the requests
    /// that the random ones have left out.
    pub(super) async fn settle(&mut self) {
        let mut tries = 0;
        while tries < 5 || tries < 300 && !(self.unseen().is_empty() && self.untested().is_empty())
        {
            for step in self.untested() {
                self.request(step).await;
            }
            for side in Side::BOTH {
                for operation in ["getManager", "getConnection", "getDelivery", "listScans"] {
                    self.call(operation, side).await;
                }
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
            self.search().await;
            tries += 1;
        }
        let metrics = self.service.metrics().await;
        assert!(metrics.contains("earshot_build_info"), "{metrics}");
        self.watch.metrics(&metrics);
    }

    /// Returns the requests that were never made, or never succeeded for an own resource.
    fn untested(&self) -> Vec<Step> {
        let mut steps = self.all_steps(true);
        steps.retain(|step| {
            let operation = self.operations[step.operation].id.clone();
            let successes = self.successes.get(&(operation, step.side, step.target));
            successes.is_none_or(|count| step.target == Target::Own && *count == 0)
        });
        steps
    }

    /// Returns the kinds of canaries that their owner has not seen.
    fn unseen(&self) -> Vec<(Side, &'static str)> {
        let kinds = Side::BOTH.into_iter().flat_map(|side| {
            let seen = self.watch.seen.get(&side);
            let unseen = move |kind: &&str| seen.is_none_or(|seen| !seen.contains(*kind));
            SEEN.into_iter()
                .filter(unseen)
                .map(move |kind| (side, kind))
        });
        kinds.collect()
    }

    pub(super) fn assert_private(&self) {
        let leaks = &self.watch.leaks;
        assert!(leaks.is_empty(), "{}", report(leaks));
    }

    /// Asserts that a leak could have been seen: every operation was used, and every field has been read.
    pub(super) fn assert_thorough(&self) {
        let mut missing = String::new();
        for step in self.untested() {
            let operation = &self.operations[step.operation].id;
            let (side, target) = (step.side, step.target);
            writeln!(missing, "{operation} by {side:?}, {target:?}").unwrap();
        }
        for (side, kind) in self.unseen() {
            writeln!(missing, "{side:?} did not see its {kind}").unwrap();
        }
        for what in ["webhooks", "fetches", "lines", "spans", "metrics pages"] {
            let searched = self.watch.searched.get(what);
            if searched.is_none_or(|count| *count < 10) {
                writeln!(missing, "{what}: {searched:?}").unwrap();
            }
        }
        assert!(missing.is_empty(), "not tested:\n{missing}");
    }

    /// Runs SQL on the service's database.
    pub(super) fn query(&self, sql: &str) -> String {
        self.service.query(sql)
    }

    pub(super) fn write_to_log(&self, line: &str) {
        self.service.write_to_log(line);
    }

    pub(super) async fn export_span(&self, name: &str) {
        self.service.export_span(name).await;
    }

    /// Returns the names of an account's resources in a collection.
    pub(super) fn names(&self, side: Side, collection: &str) -> Vec<&str> {
        self.estates[side.index()].all(collection)
    }

    pub(super) fn summary(&self) -> String {
        let searched = self.watch.searched.iter();
        let searched: Vec<String> = searched
            .map(|(what, count)| format!("{count} {what}"))
            .collect();
        format!(
            "{} requests; searched {}",
            self.requests,
            searched.join(", ")
        )
    }

    pub(super) fn print_log(&self) {
        self.service.print_log();
    }
}

/// Everything is logged, and feeds are read often and from their first posts on.
fn settings(simulator: &str) -> String {
    let settings = config::common(simulator)
        .replace("filter = \"info\"", "filter = \"debug\"")
        .replace("backfill = \"0s\"", "backfill = \"1h\"");
    settings + &config::customers_feeds("blogs")
}

/// Returns the first leaks, one in a paragraph.
pub(super) fn report(leaks: &[Leak]) -> String {
    let first = leaks.iter().take(5);
    first.fold(format!("{} leaks\n", leaks.len()), |mut text, leak| {
        let message: String = leak.message.chars().take(3_000).collect();
        writeln!(text, "{:?}: {message}\n", leak.channel).unwrap();
        text
    })
}

/// Remembers what an account can use later.
fn learn(
    own: &mut Estate,
    operation: &Operation,
    target: Target,
    request: &Request,
    answer: &Answer,
) {
    // A cancelled Replay stays.
    let is_deleted = operation.method == "DELETE" && operation.id != "cancelReplay";
    let is_gone = answer.status == 404 || is_deleted && answer.status < 300;
    let is_real = target == Target::Own && !request.is_test();
    if let Some(name) = request.name.as_deref().filter(|_| is_gone && is_real) {
        own.forget(name);
        return;
    }
    if answer.status >= 300 || request.is_test() {
        return;
    }
    let etag = answer.header("etag");
    if !etag.is_empty() {
        keep(&mut own.etags, etag.to_owned());
    }
    let Ok(body) = serde_json::from_slice::<Value>(&answer.body) else {
        return;
    };
    own.learn(&body);
    if let Some(token) = body["nextPageToken"].as_str() {
        let mut query = request.query.clone();
        query.retain(|(name, _)| name != "pageToken");
        let page = Page {
            operation: operation.id.clone(),
            query,
            token: token.to_owned(),
        };
        keep(&mut own.pages, page);
    }
}
