//! Load from customers and platforms during the faults.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use http::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{absences, fleet::Fleet, pollers::Pollers, recovery};
use crate::{
    chance::Chance,
    customer,
    harness::{
        api::{self, Api},
        config::{BLUESKY, HACKER_NEWS, LEMMY, MASTODON, REDDIT},
        eventually, now_micros,
        proxy::Proxy,
        receiver::{Behaviour, Receiver},
    },
};

pub(super) const WORD: &str = "mosswhistle";
pub(super) const BLOG: &str = "feed:blog";
/// Platforms of consecutive posts. Reddit gets fewer, and none within [`absences::reddit_pause`] of its last one.
const PLATFORMS: [&str; 7] = [
    HACKER_NEWS,
    LEMMY,
    MASTODON,
    HACKER_NEWS,
    BLUESKY,
    LEMMY,
    REDDIT,
];
/// The blog's feed shows its last fifty entries: no fault, and no wait after it, may last for that many of these pauses.
/// Absences that last longer make it longer.
const BLOG_PAUSE: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(120);
/// Number of scripted answers of the receiver that sometimes fails.
const SCRIPT: usize = 2_000;
const LONGEST_PAUSE_MS: u64 = 250;
const LARGEST_BURST: u64 = 6;
/// Deliveries to one Connection that may wait while a load keeps pace.
const MOST_WAITING: usize = 50;

/// The forums with a feed of all posts.
const FORUMS: &[&str] = &[HACKER_NEWS, LEMMY];
const UNREAD: &str = "SELECT count(*) FROM feeds WHERE watched AND cursor IS NULL";
/// Source, platforms whose posts are matched, and Connections of each Manager.
const MANAGERS: &[(&str, &[&str], &[usize])] = &[
    ("FORUM", FORUMS, &[0, 1]),
    ("NETWORK", &[BLOG], &[0, 1]),
    ("FORUM", FORUMS, &[1]),
    ("FORUM", &[REDDIT], &[0]),
    ("MICROBLOG", &[BLUESKY, MASTODON], &[1]),
];

/// A customer with two Connections, and Managers of all kinds of sources.
pub(super) struct World {
    pub(super) namespace: String,
    pub(super) connections: Vec<(String, Receiver)>,
    /// Proxies to their receivers, in the same order.
    pub(super) ways: Vec<Proxy>,
    pub(super) managers: Vec<Watching>,
    pub(super) pollers: Option<Pollers>,
}

pub(super) struct Watching {
    pub(super) manager: Value,
    /// Platforms whose posts with `word` it must match.
    pub(super) platforms: &'static [&'static str],
    pub(super) word: &'static str,
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
            pollers: None,
        };
        for (source, platforms, notices) in MANAGERS {
            let mut request = world.manager(source, notices);
            if *platforms == [REDDIT] {
                // Reddit has no feed of all posts.
                let feed = format!("{REDDIT}:r/{WORD}");
                request["instructions"]["feeds"] = json!([feed]);
            }
            world.create(&api, &request, platforms, notices, WORD).await;
        }
        // Together, because each takes all services a moment.
        for watching in &mut world.managers {
            watching.manager = api.applied(&watching.manager, PATIENCE).await;
        }
        // Posts that exist at the first read of a feed count as known.
        eventually("every feed is read once", PATIENCE, async || {
            (fleet.query(UNREAD) == "0").then_some(())
        })
        .await;
        // Times in RSS have whole seconds: those of new posts must not be before the first reading.
        let second = || now_micros() / 1_000_000;
        let read = second();
        eventually("the next second", PATIENCE, async || {
            (second() > read).then_some(())
        })
        .await;
        world.pollers = Some(Pollers::start(fleet, &world.managers));
        world
    }

    /// Adds a Manager that watches forums for `asked`, and in the end must have matched `word` alone.
    pub(super) async fn watch(&mut self, api: &Api, asked: &str, word: &'static str) {
        let mut request = self.manager("FORUM", &[0]);
        request["instructions"] = json!({"require": [[asked]]});
        self.create(api, &request, FORUMS, &[0], word).await;
        let made = self.managers.last_mut().unwrap();
        made.manager = api.applied(&made.manager, PATIENCE).await;
    }

    async fn create(
        &mut self,
        api: &Api,
        request: &Value,
        platforms: &'static [&'static str],
        connections: &[usize],
        word: &'static str,
    ) {
        self.managers.push(Watching {
            manager: api.create_manager(&self.namespace, request).await,
            platforms,
            word,
            connections: connections.to_vec(),
        });
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
    /// Published posts by their ids.
    pub(super) posts: BTreeMap<String, Published>,
    /// Number of answered calls.
    pub(super) calls: u32,
    /// Created Managers by nickname, each as it was answered.
    pub(super) created: Vec<(String, Value)>,
}

pub(super) struct Published {
    pub(super) platform: &'static str,
    /// The word that it contains.
    pub(super) word: &'static str,
}

pub(super) struct Load<'a> {
    fleet: &'a Fleet,
    world: &'a World,
    apis: Vec<Api>,
    published: usize,
    /// Number of deliveries that the first Connection must get.
    due: usize,
    blog_pause: Duration,
    next_blog_post: Instant,
    next_reddit_post: Instant,
    done: Done,
}

impl<'a> Load<'a> {
    pub(super) fn new(fleet: &'a Fleet, world: &'a World) -> Self {
        Self {
            fleet,
            world,
            apis: fleet.apis(),
            published: 0,
            due: 0,
            blog_pause: BLOG_PAUSE + absences::length() / 10,
            next_blog_post: Instant::now(),
            next_reddit_post: Instant::now(),
            done: Done {
                posts: BTreeMap::new(),
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

    /// Publishes this many posts every tenth of a second, but none while many deliveries wait: a slow machine must not
    /// fall behind more and more.
    pub(super) async fn keep_pace(&mut self, count: u64, go_on: impl Fn() -> bool) {
        let mut ticks = tokio::time::interval(Duration::from_millis(100));
        while go_on() {
            ticks.tick().await;
            // The first receiver never fails, so it gets each Scan once.
            let received = self.world.connections[0].1.count();
            if self.due < received + MOST_WAITING {
                self.publish(count).await;
            }
        }
    }

    pub(super) fn done(&self) -> &Done {
        &self.done
    }

    /// Publishes posts that contain [`WORD`].
    pub(super) async fn publish(&mut self, count: u64) {
        self.publish_about(WORD, count).await;
    }

    /// Publishes posts that contain a word.
    pub(super) async fn publish_about(&mut self, word: &'static str, count: u64) {
        let mut posts = Vec::new();
        for _ in 0..count {
            let number = self.published;
            self.published += 1;
            let now = Instant::now();
            let platform = if now >= self.next_blog_post {
                self.next_blog_post = now + self.blog_pause;
                BLOG
            } else {
                match PLATFORMS[number % PLATFORMS.len()] {
                    REDDIT if now < self.next_reddit_post => LEMMY,
                    platform => platform,
                }
            };
            if platform == REDDIT {
                self.next_reddit_post = now + absences::reddit_pause();
            }
            posts.push((post(platform, word, number), platform));
        }
        let bodies: Vec<Value> = posts.iter().map(|(post, _)| post.clone()).collect();
        let ids = self.fleet.simulator.publish(&bodies).await;
        for (id, (_, platform)) in ids.into_iter().zip(posts) {
            let managers = self.world.managers.iter();
            let first = managers.filter(|one| {
                one.word == word
                    && one.platforms.contains(&platform)
                    && one.connections.contains(&0)
            });
            self.due += first.count();
            self.done.posts.insert(id, Published { platform, word });
        }
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
        let created = eventually("a Manager is created", recovery(), async || {
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

/// A post that only contains a word, in the format of the simulator's control API.
fn post(platform: &str, word: &str, number: usize) -> Value {
    let community = match platform {
        REDDIT => Some(WORD),
        LEMMY => Some("beekeeping"),
        _ => None,
    };
    json!({
        "platform": platform, "community": community, "author": "petra.k",
        "title": format!("Number {number} about the {word}"),
        "text": format!("There is nothing else to say about the {word}, number {number}."),
    })
}

/// Asserts the expected status, or a temporary unavailability of the service.
fn assert_ordinary(answer: &api::Answer, expected: u16) {
    let ordinary = [expected, 503].contains(&answer.status);
    let body = String::from_utf8_lossy(&answer.body);
    assert!(ordinary, "{} instead of {expected}: {body}", answer.status);
}
