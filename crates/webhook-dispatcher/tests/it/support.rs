//! A database, Scans to deliver, and dispatchers.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bus::{Bus, InProcess};
use domain::{ConnectionName, ManagerName, Match, Post, ScanName, Timestamp};
use events::ScanCreated;
use runtime::Config;
use store::{
    AsyncConnection,
    scans::{self, NewScan},
};
use test_support::{
    Answer, Fixture, Replica, TIMEOUT, TestDatabase, TestServer, eventually, publish,
};

pub(crate) struct World {
    pub(crate) database: TestDatabase,
    pub(crate) fixture: Fixture,
    pub(crate) config: Config,
    pub(crate) bus: Arc<dyn Bus>,
}

impl World {
    /// With a schedule of three retries, a tenth of a second apart.
    pub(crate) async fn new() -> Self {
        let database = TestDatabase::create().await;
        let fixture = Fixture::create(&mut database.connect().await).await;
        let mut config = test_support::config(&database, store::roles::Service::Dispatcher);
        // Longer than any test waits.
        config.dispatcher.timeout = 10 * TIMEOUT;
        config.dispatcher.retry_schedule = vec![Duration::from_millis(100); 3];
        Self {
            database,
            fixture,
            config,
            bus: Arc::new(InProcess::new()),
        }
    }

    pub(crate) fn dispatcher(&self) -> Replica {
        let run = webhook_dispatcher::run;
        Replica::of("webhook-dispatcher", &self.config, &self.bus, run)
    }

    /// A dispatcher that uses `client`, with its name resolution and trusted certificates.
    pub(crate) fn dispatcher_with(&self, client: outbound::Client) -> Replica {
        let run = |config, context, own| webhook_dispatcher::run_with(config, context, own, client);
        Replica::of("webhook-dispatcher", &self.config, &self.bus, run)
    }

    pub(crate) async fn ready_dispatcher(&self) -> Replica {
        let replica = self.dispatcher();
        eventually("the dispatcher is ready", async || {
            replica.health.report().is_ready()
        })
        .await;
        replica
    }

    pub(crate) async fn connection(&self, server: &TestServer) -> ConnectionName {
        let mut conn = self.database.connect().await;
        self.fixture
            .connection(&mut conn, &server.url("/hook"))
            .await
    }

    pub(crate) async fn manager(&self, notices: &[ConnectionName]) -> ManagerName {
        let mut conn = self.database.connect().await;
        let instructions = test_support::instructions("kettle");
        self.fixture
            .applied_manager(&mut conn, &instructions, notices)
            .await
    }

    /// A Manager whose Scans go only to this receiver.
    pub(crate) async fn manager_for(&self, receiver: &TestServer) -> ManagerName {
        let connection = self.connection(receiver).await;
        self.manager(&[connection]).await
    }

    /// A Scan without an event.
    pub(crate) async fn scan(&self, manager: ManagerName, title: &str) -> ScanName {
        let post = test_support::post(&format!("hackernews:{title}"), title);
        self.record(manager, &[post]).await[0]
    }

    pub(crate) async fn record(&self, manager: ManagerName, posts: &[Post]) -> Vec<ScanName> {
        let new: Vec<_> = posts
            .iter()
            .map(|post| NewScan {
                manager,
                post,
                matched: Match {
                    score: 1.0,
                    ..Match::default()
                },
            })
            .collect();
        let feed = "hackernews:newest".parse().unwrap();
        let mut conn = self.database.connect().await;
        conn.transaction(async |conn| scans::record(conn, &feed, &new, Timestamp::now()).await)
            .await
            .unwrap()
    }

    pub(crate) async fn publish_created(&self, scan: ScanName) {
        let event = ScanCreated {
            name: scan,
            create_time: scan.scan.time(),
        };
        publish(&self.bus, event).await;
    }

    /// A Scan and its event.
    pub(crate) async fn publish_scan(&self, manager: ManagerName, title: &str) -> ScanName {
        let scan = self.scan(manager, title).await;
        self.publish_created(scan).await;
        scan
    }

    /// Several Scans without events.
    pub(crate) async fn scans(&self, manager: ManagerName, count: usize) {
        let post = |number| {
            let title = format!("kettle {number}");
            test_support::post(&format!("hackernews:{title}"), &title)
        };
        let posts: Vec<_> = (0..count).map(post).collect();
        for posts in posts.chunks(200) {
            self.record(manager, posts).await;
        }
    }

    /// Several Scans, each with its event.
    pub(crate) async fn scans_and_tell(&self, manager: ManagerName, count: usize) {
        for number in 0..count {
            self.publish_scan(manager, &format!("kettle {number}"))
                .await;
        }
    }

    /// Makes a Connection succeed until its lane has its maximum limit; returns the number of requests.
    pub(crate) async fn warm(&self, manager: ManagerName) -> usize {
        const COUNT: i64 = 8;
        let before = self.in_state("SUCCEEDED").await;
        for number in 0..COUNT {
            self.publish_scan(manager, &format!("warm {number}")).await;
        }
        self.until("SUCCEEDED", before + COUNT).await;
        8
    }

    /// Number of deliveries in `state`.
    pub(crate) async fn in_state(&self, state: &str) -> i64 {
        self.database
            .count(&format!("deliveries WHERE state = '{state}'"))
            .await
    }

    /// Waits for `count` deliveries in `state`.
    pub(crate) async fn until(&self, state: &str, count: i64) {
        eventually(&format!("{count} of {state}"), async || {
            self.in_state(state).await == count
        })
        .await;
    }

    /// Waits until each replica has beaten this often, about once a second: what it would do by then, it has begun.
    pub(crate) async fn beats(&self, count: usize) {
        let times = async || {
            let beats = "replicas ORDER BY id";
            self.database.texts("heartbeat_time", beats).await
        };
        for _ in 0..count {
            let before = times().await;
            eventually("all replicas beat", async || {
                let now = times().await;
                now.len() != before.len() || now.iter().zip(&before).all(|(now, then)| now != then)
            })
            .await;
        }
    }

    /// Attempts in the log, earliest first: number, status, error.
    pub(crate) async fn attempts(&self) -> Vec<String> {
        let line =
            "number || ' ' || coalesce(status_code::text, '-') || ' ' || coalesce(error, '-')";
        self.database
            .texts(line, "delivery_attempts ORDER BY time")
            .await
    }
}

pub(crate) async fn always(answer: Answer) -> TestServer {
    TestServer::start(move |_, _| answer.clone()).await
}

/// A receiver with an answer that the test may change.
pub(crate) async fn changing(answer: Answer) -> (TestServer, Arc<Mutex<Answer>>) {
    let answer = Arc::new(Mutex::new(answer));
    let current = Arc::clone(&answer);
    let server = TestServer::start(move |_, _| current.lock().unwrap().clone()).await;
    (server, answer)
}

/// A receiver that sends each of these responses once, and then 200.
pub(crate) async fn scripted(answers: Vec<Answer>) -> TestServer {
    TestServer::start(move |number, _| {
        let answer = answers.get(number).cloned();
        answer.unwrap_or(Answer::Status(200))
    })
    .await
}

/// Answers 200 to the requests that warm a lane up, and then `answer`.
pub(crate) async fn after_warming(answer: Answer) -> TestServer {
    TestServer::start(move |number, _| {
        if number < 8 {
            Answer::Status(200)
        } else {
            answer.clone()
        }
    })
    .await
}
