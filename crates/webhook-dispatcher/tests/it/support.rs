//! A database, Scans to deliver, and dispatchers.

use std::{sync::Arc, time::Duration};

use backbone::Backbone;
use bus::{Bus, InProcess, Outgoing};
use domain::{ConnectionName, ManagerName, Match, ScanName, Timestamp};
use events::{Message, ScanCreated, TraceContext};
use runtime::Config;
use store::{
    AsyncConnection,
    scans::{self, NewScan},
};
use test_support::{Answer, Fixture, Replica, TestDatabase, TestServer, eventually};

pub(crate) const SOON: Duration = Duration::from_secs(8);

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
        config.dispatcher.timeout = Duration::from_millis(800);
        config.dispatcher.retry_schedule = vec![Duration::from_millis(100); 3];
        Self {
            database,
            fixture,
            config,
            bus: Arc::new(InProcess::new()),
        }
    }

    pub(crate) fn dispatcher(&self) -> Replica {
        let mut backbone = Backbone::in_process(&self.config).unwrap();
        backbone.bus = Arc::clone(&self.bus);
        let config = Arc::new(self.config.clone());
        let own = backbone.clone();
        Replica::start("webhook-dispatcher", backbone, move |context| {
            webhook_dispatcher::run(config, context, own)
        })
    }

    /// A dispatcher that resolves and trusts as `client` does.
    pub(crate) fn dispatcher_with(&self, client: outbound::Client) -> Replica {
        let mut backbone = Backbone::in_process(&self.config).unwrap();
        backbone.bus = Arc::clone(&self.bus);
        let config = Arc::new(self.config.clone());
        let own = backbone.clone();
        Replica::start("webhook-dispatcher", backbone, move |context| {
            webhook_dispatcher::run_with(config, context, own, client)
        })
    }

    pub(crate) async fn ready_dispatcher(&self) -> Replica {
        let replica = self.dispatcher();
        eventually("the dispatcher is ready", SOON, async || {
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

    /// A Manager whose Scans go to this receiver alone.
    pub(crate) async fn manager_for(&self, receiver: &TestServer) -> ManagerName {
        let connection = self.connection(receiver).await;
        self.manager(&[connection]).await
    }

    /// A Scan without an event.
    pub(crate) async fn scan(&self, manager: ManagerName, title: &str) -> ScanName {
        let post = test_support::post(&format!("hackernews:{title}"), title);
        let new = NewScan {
            manager,
            post: &post,
            matched: Match {
                score: 1.0,
                terms: Vec::new(),
                focus: None,
                spans: Vec::new(),
                signals: None,
                judged: false,
            },
        };
        let feed = "hackernews:newest".parse().unwrap();
        let mut conn = self.database.connect().await;
        let made = conn
            .transaction(async |conn| scans::record(conn, &feed, &[new], Timestamp::now()).await)
            .await
            .unwrap();
        made[0]
    }

    pub(crate) async fn tell(&self, scan: ScanName) {
        let message = Message::new(ScanCreated {
            name: scan,
            create_time: scan.scan.time(),
        });
        let outgoing = Outgoing {
            message: message.encode(),
            create_time: message.create_time,
            trace: TraceContext::default(),
        };
        for taken in self.bus.publish(&[outgoing]).await {
            taken.unwrap();
        }
    }

    /// A Scan and its event.
    pub(crate) async fn scan_and_tell(&self, manager: ManagerName, title: &str) -> ScanName {
        let scan = self.scan(manager, title).await;
        self.tell(scan).await;
        scan
    }

    /// Several Scans without events.
    pub(crate) async fn scans(&self, manager: ManagerName, count: usize) {
        for number in 0..count {
            self.scan(manager, &format!("kettle {number}")).await;
        }
    }

    /// Several Scans, each with its event.
    pub(crate) async fn scans_and_tell(&self, manager: ManagerName, count: usize) {
        for number in 0..count {
            self.scan_and_tell(manager, &format!("kettle {number}"))
                .await;
        }
    }

    /// Has a Connection succeed until its lane is at its widest; returns how many requests that took.
    pub(crate) async fn warm(&self, manager: ManagerName) -> usize {
        const COUNT: i64 = 8;
        let before = self.in_state("SUCCEEDED").await;
        for number in 0..COUNT {
            self.scan_and_tell(manager, &format!("warm {number}")).await;
        }
        self.until("SUCCEEDED", before + COUNT).await;
        8
    }

    /// How many deliveries are in `state`.
    pub(crate) async fn in_state(&self, state: &str) -> i64 {
        self.database
            .count(&format!("deliveries WHERE state = '{state}'"))
            .await
    }

    /// Waits for `count` deliveries in `state`, and returns how long that took.
    pub(crate) async fn until(&self, state: &str, count: i64) -> Duration {
        eventually(&format!("{count} of {state}"), SOON, async || {
            self.in_state(state).await == count
        })
        .await
    }

    /// Attempts in the log, the earliest first: number, status, error.
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

/// One answer each, and 200 to what follows.
pub(crate) async fn scripted(answers: Vec<Answer>) -> TestServer {
    TestServer::start(move |number, _| {
        let answer = answers.get(number).cloned();
        answer.unwrap_or(Answer::Status(200))
    })
    .await
}

/// 200 to what warms a lane, and then this.
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
