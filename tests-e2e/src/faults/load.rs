//! Load from customers and platforms during the faults.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use http::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::fleet::Fleet;
use crate::{
    chance::Chance,
    customer,
    harness::{
        api::{self, Api},
        eventually,
        proxy::Proxy,
        receiver::{Behaviour, Receiver},
    },
    posts::{Platform, Post},
};

const WORD: &str = "mosswhistle";
const PATIENCE: Duration = Duration::from_secs(60);
/// Number of scripted answers of the receiver that sometimes fails.
const SCRIPT: usize = 2_000;
const LONGEST_PAUSE_MS: u64 = 250;
const LARGEST_BURST: u64 = 6;

/// A customer with two Connections, and Managers of both kinds of sources.
pub(super) struct World {
    pub(super) namespace: String,
    pub(super) connections: Vec<(String, Receiver)>,
    /// Proxies to their receivers, in the same order.
    pub(super) ways: Vec<Proxy>,
    pub(super) managers: Vec<Watching>,
}

pub(super) struct Watching {
    pub(super) manager: Value,
    pub(super) source: &'static str,
    /// Connections by their index in the world.
    pub(super) connections: Vec<usize>,
}

impl World {
    pub(super) async fn new(fleet: &Fleet) -> Self {
        let api = fleet.apis().remove(0);
        let namespace = api.create_namespace("faults").await;
        // Never enough failures in a row, or among the last twenty, to open a breaker.
        let sometimes =
            (0..SCRIPT).map(|at| Behaviour::Answer(if at % 9 == 8 { 503 } else { 200 }));
        let receivers = [
            Receiver::slow(Duration::from_millis(20)).await,
            Receiver::scripted(sometimes).await,
        ];
        let (mut connections, mut ways) = (Vec::new(), Vec::new());
        for receiver in receivers {
            let url: http::Uri = receiver.url().parse().unwrap();
            let address = url.authority().unwrap().as_str();
            let way = Proxy::start(address).await;
            let url = receiver.url().replace(address, way.address());
            let made = api.create_connection(&namespace, &url, json!({})).await;
            connections.push((made, receiver));
            ways.push(way);
        }
        let mut world = Self {
            namespace,
            connections,
            ways,
            managers: Vec::new(),
        };
        for (source, notices) in [
            ("FORUM", vec![0, 1]),
            ("NETWORK", vec![0, 1]),
            ("FORUM", vec![1]),
        ] {
            let request = world.manager(source, &notices);
            let made = api.create_manager(&world.namespace, &request).await;
            world.managers.push(Watching {
                manager: api.applied(&made, PATIENCE).await,
                source,
                connections: notices,
            });
        }
        world
    }

    fn manager(&self, source: &str, notices: &[usize]) -> Value {
        let (first, _) = &self.connections[notices[0]];
        let mut manager = customer::word_manager(source, WORD, first);
        let notice =
            |at: &usize| json!({"type": "HTTP_REQUEST", "connection": self.connections[*at].0});
        manager["notices"] = notices.iter().map(notice).collect();
        manager
    }
}

/// Record of the load during the faults.
pub(super) struct Done {
    /// Published posts, with their sources.
    pub(super) posts: BTreeSet<(String, &'static str)>,
    /// Number of answered calls.
    pub(super) calls: u32,
    /// Created Managers by nickname, each as it was answered.
    pub(super) created: Vec<(String, Value)>,
}

pub(super) struct Load<'a> {
    fleet: &'a Fleet,
    world: &'a World,
    apis: Vec<Api>,
    published: usize,
    done: Done,
}

impl<'a> Load<'a> {
    pub(super) fn new(fleet: &'a Fleet, world: &'a World) -> Self {
        Self {
            fleet,
            world,
            apis: fleet.apis(),
            published: 0,
            done: Done {
                posts: BTreeSet::new(),
                calls: 0,
                created: Vec::new(),
            },
        }
    }

    pub(super) async fn go_on(mut self, mut chance: Chance, until: Instant) -> Done {
        while Instant::now() < until {
            sleep(Duration::from_millis(chance.below(LONGEST_PAUSE_MS))).await;
            match chance.below(12) {
                0 => self.create(&mut chance).await,
                1 | 2 => self.look(&mut chance).await,
                _ => self.publish(1 + chance.below(LARGEST_BURST)).await,
            }
        }
        // Some posts arrive after the last fault has begun.
        self.publish(LARGEST_BURST).await;
        self.done
    }

    /// Publishes this many posts every tenth of a second.
    pub(super) async fn keep_publishing(&mut self, count: u64, go_on: impl Fn() -> bool) {
        let mut ticks = tokio::time::interval(Duration::from_millis(100));
        while go_on() {
            ticks.tick().await;
            self.publish(count).await;
        }
    }

    pub(super) fn done(self) -> Done {
        self.done
    }

    /// One of twenty posts is on the blog, whose feed shows only the last fifty.
    async fn publish(&mut self, count: u64) {
        let mut posts = Vec::new();
        for _ in 0..count {
            let nth = self.published * 5;
            self.published += 1;
            let blog = self.published.is_multiple_of(20);
            let candidates = (nth..nth + 5).map(|nth| Post::about(WORD, nth));
            let fitting = candidates.filter(|post| (post.platform == Platform::Blog) == blog);
            let fitting: Vec<Post> = fitting.collect();
            posts.push((
                fitting[self.published % fitting.len()].clone(),
                if blog { "NETWORK" } else { "FORUM" },
            ));
        }
        let bodies: Vec<Value> = posts.iter().map(|(post, _)| post.json()).collect();
        let ids = self.fleet.simulator.publish(&bodies).await;
        let sources = posts.iter().map(|(_, source)| *source);
        self.done.posts.extend(ids.into_iter().zip(sources));
    }

    /// Reads a list from a random gateway.
    async fn look(&mut self, chance: &mut Chance) {
        let api = &self.apis[usize::try_from(chance.below(self.apis.len() as u64)).unwrap()];
        let path = format!("/v1/{}/connections", self.world.namespace);
        if let Some(answer) = api.try_request(Method::GET, &path, &[], None).await {
            assert_ordinary(&answer, 200);
            self.done.calls += 1;
        }
    }

    /// Requests a Manager until a gateway confirms it, with one `Idempotency-Key`: exactly one must exist.
    async fn create(&mut self, chance: &mut Chance) {
        let nickname = format!("made amid faults {}", self.done.created.len());
        let mut request = self.world.manager("FORUM", &[0]);
        request["nickname"] = json!(nickname);
        // It matches nothing, so that the checks of the other Managers stay simple.
        request["instructions"] = json!({"require": [[format!("{WORD}nothing")]]});
        let path = format!("/v1/{}/managers", self.world.namespace);
        let key = nickname.replace(' ', "-");
        let headers = [
            ("content-type", "application/json"),
            ("idempotency-key", key.as_str()),
        ];
        let mut at = usize::try_from(chance.below(self.apis.len() as u64)).unwrap();
        let created = eventually("a Manager is created", PATIENCE, async || {
            at = (at + 1) % self.apis.len();
            let body = Some(request.to_string());
            let answer = self.apis[at]
                .try_request(Method::POST, &path, &headers, body)
                .await?;
            assert_ordinary(&answer, 201);
            (answer.status == 201).then(|| answer.json())
        });
        let created = created.await;
        self.done.calls += 1;
        self.done.created.push((nickname, created));
    }
}

/// Asserts the expected status, or a temporary unavailability of the service.
fn assert_ordinary(answer: &api::Answer, expected: u16) {
    let ordinary = [expected, 503].contains(&answer.status);
    let body = String::from_utf8_lossy(&answer.body);
    assert!(ordinary, "{} instead of {expected}: {body}", answer.status);
}
