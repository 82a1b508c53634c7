//! A database, simulated platforms, and scanners for tests.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bus::{Bus, InProcess};
use domain::{FeedName, Instructions, ManagerName, Timestamp, manager::SourceType};
use events::{ManagerApplied, ManagerChanged};
use platform_simulator::{BLUESKY, NewPost, Simulator};
use platforms::Settings;
use runtime::{
    Config,
    config::{Access, Kind, PlatformConfig},
};
use store::plans;
use test_support::{Fixture, Replica, TestDatabase, eventually, publish};
use uuid::Uuid;

pub(crate) const HACKER_NEWS: &str = "hackernews:newest";
pub(crate) const LEMMY: &str = "lemmy:newest";

pub(crate) struct World {
    pub(crate) database: TestDatabase,
    pub(crate) platforms: Simulator,
    pub(crate) fixture: Fixture,
    pub(crate) config: Config,
    pub(crate) bus: Arc<dyn Bus>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let database = TestDatabase::create().await;
        let platforms = Simulator::start("127.0.0.1:0".parse().unwrap()).unwrap();
        let fixture = Fixture::create(&mut database.connect().await).await;
        let mut config = test_support::config(&database, store::roles::Service::Scanner);
        config.platforms = platforms.settings().into_iter().map(configured).collect();
        Self {
            database,
            platforms,
            fixture,
            config,
            bus: Arc::new(InProcess::new()),
        }
    }

    /// A world whose only platform is `blogs`, of feeds that customers name.
    pub(crate) async fn of_blogs(poll_interval: Duration) -> Self {
        let mut world = Self::new().await;
        world.config.platforms = vec![blogs(poll_interval)];
        world
    }

    /// Adds the stream of Bluesky.
    pub(crate) fn add_stream(&mut self) {
        let settings = self.platforms.settings_of(BLUESKY);
        self.config.platforms.push(PlatformConfig {
            // Authors are not looked up.
            items_url: None,
            ..configured(settings)
        });
    }

    /// Records in the table `log` every lease that is taken and ended, and in `pauses` every replica whose heartbeat
    /// paused for so long that its leases were free.
    pub(crate) async fn log_leases(&self) {
        for statement in [
            "CREATE TABLE log (feed text, was uuid, now uuid, due timestamptz, at timestamptz)",
            "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN \
             INSERT INTO log VALUES (NEW.name, OLD.leased_by, NEW.leased_by, OLD.next_poll_time, clock_timestamp()); \
             RETURN NULL; END $$",
            "CREATE TRIGGER note AFTER UPDATE ON feeds FOR EACH ROW \
             WHEN (OLD.leased_by IS DISTINCT FROM NEW.leased_by) EXECUTE FUNCTION note()",
            "CREATE TABLE pauses (replica uuid)",
            "CREATE FUNCTION note_pause() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN \
             INSERT INTO pauses VALUES (OLD.id); RETURN NULL; END $$",
            "CREATE TRIGGER pause AFTER UPDATE ON replicas FOR EACH ROW \
             WHEN (NEW.heartbeat_time > OLD.heartbeat_time + interval '4 seconds') EXECUTE FUNCTION note_pause()",
            "CREATE TRIGGER pause_at_end AFTER DELETE ON replicas FOR EACH ROW \
             WHEN (OLD.heartbeat_time < clock_timestamp() - interval '4 seconds') EXECUTE FUNCTION note_pause()",
        ] {
            self.database.run(statement).await;
        }
    }

    /// Counts the leases that one replica took from another, and asserts that the previous holders were killed, or
    /// too slow for their heartbeats.
    pub(crate) async fn taken_over(&self, killed: &BTreeSet<Uuid>) -> usize {
        let both = "log WHERE was IS NOT NULL AND now IS NOT NULL AND was <> now";
        let taken = self.database.texts("was", both).await;
        let paused = self.database.texts("replica", "pauses").await;
        for was in &taken {
            let is_killed = killed.contains(&was.parse::<Uuid>().unwrap());
            assert!(
                is_killed || paused.contains(was),
                "{was} lived and lost its lease"
            );
        }
        taken.len()
    }

    /// One more replica, on the bus of the others.
    pub(crate) fn scanner(&self) -> Replica {
        Replica::of("scanner", &self.config, &self.bus, scanner::run)
    }

    /// Starts a replica, and returns when it scans.
    pub(crate) async fn ready_scanner(&self) -> Replica {
        let replica = self.scanner();
        eventually("the scanner is ready", async || {
            replica.health.report().is_ready()
        })
        .await;
        replica
    }

    /// An applied Manager without an event.
    pub(crate) async fn manager(&self, term: &str, feeds: &[&str]) -> ManagerName {
        let mut conn = self.database.connect().await;
        let instructions = watching(term, feeds);
        self.fixture
            .applied_manager(&mut conn, &instructions, &[])
            .await
    }

    pub(crate) async fn publish_applied(&self, name: ManagerName) {
        let plan_version = self.plan_version().await;
        let event = ManagerApplied {
            name,
            generation: 1,
            plan_version,
        };
        publish(&self.bus, event).await;
    }

    /// Disables a Manager like the gateway.
    pub(crate) async fn disable(&self, name: ManagerName) {
        let id = name.manager.to_uuid();
        self.database
            .run(&format!(
                "UPDATE managers SET enable = false WHERE id = '{id}'"
            ))
            .await;
        self.change(name).await;
    }

    /// Records a change of a Manager's plan, and publishes it.
    pub(crate) async fn change(&self, name: ManagerName) {
        let mut conn = self.database.connect().await;
        let plan_version = plans::record_change(
            &mut conn,
            name,
            &[],
            &test_support::QUOTAS,
            Timestamp::now(),
        )
        .await
        .unwrap();
        publish(&self.bus, ManagerChanged { name, plan_version }).await;
    }

    /// Replaces a Manager's instructions.
    pub(crate) async fn replace(&self, name: ManagerName, instructions: &Instructions) {
        let id = name.manager.to_uuid();
        let json = serde_json::to_string(instructions).unwrap();
        let statement =
            format!("UPDATE managers SET instructions = $it${json}$it$ WHERE id = '{id}'");
        self.database.run(&statement).await;
        let mut conn = self.database.connect().await;
        let (feeds, quotas) = (&instructions.feeds, &test_support::QUOTAS);
        let plan_version = plans::record_change(&mut conn, name, feeds, quotas, Timestamp::now());
        self.publish_changed(name, plan_version.await.unwrap())
            .await;
    }

    pub(crate) async fn publish_changed(&self, name: ManagerName, plan_version: i64) {
        publish(&self.bus, ManagerChanged { name, plan_version }).await;
    }

    async fn plan_version(&self) -> i64 {
        let mut conn = self.database.connect().await;
        plans::version(&mut conn).await.unwrap().number
    }

    pub(crate) fn publish(&self, platform: &str, title: &str) {
        self.platforms.publish(vec![post(platform, title)]);
    }

    /// Texts of a Manager's Scans, in order of creation.
    pub(crate) async fn scanned_texts(&self, manager: ManagerName) -> Vec<String> {
        self.scanned_of(manager, "p.text").await
    }

    /// Titles of a Manager's Scans, in order of creation.
    pub(crate) async fn scanned(&self, manager: ManagerName) -> Vec<String> {
        self.scanned_of(manager, "p.title").await
    }

    async fn scanned_of(&self, manager: ManagerName, column: &str) -> Vec<String> {
        let id = manager.manager.to_uuid();
        let from = format!(
            "scans AS s JOIN posts AS p ON p.receive_time = s.post_receive_time AND p.id = s.post_id \
             WHERE s.manager_id = '{id}' ORDER BY s.create_time"
        );
        self.database.texts(column, &from).await
    }

    /// Waits until the Manager has `count` Scans.
    pub(crate) async fn until_scanned(&self, manager: ManagerName, count: usize) {
        eventually(&format!("{count} Scans"), async || {
            self.scanned(manager).await.len() >= count
        })
        .await;
    }

    /// Waits until past posts are matched too.
    pub(crate) async fn until_backfilled(&self) {
        // Without a dispatcher, each block waits for 0.8 seconds.
        eventually("the backfills end", async || {
            let open = "backfills WHERE state <> 'DONE'";
            self.database.count(open).await + self.database.count("look_backs").await == 0
        })
        .await;
    }

    /// Waits until the Manager has a Scan of the post with this title.
    pub(crate) async fn until(&self, manager: ManagerName, title: &str) {
        eventually(title, async || {
            self.scanned(manager)
                .await
                .iter()
                .any(|found| found == title)
        })
        .await;
    }

    /// A column of a feed's row.
    pub(crate) async fn feed(&self, name: &str, column: &str) -> String {
        let from = format!("feeds WHERE name = '{name}'");
        self.database.texts(column, &from).await.concat()
    }

    /// Waits for a request that begins after this call.
    pub(crate) async fn until_asked(&self, path: &str) {
        let before = self.platforms.requests(path);
        eventually(&format!("a request of {path}"), async || {
            self.platforms.requests(path) > before
        })
        .await;
    }
}

/// Configures a platform of the simulator, polled often.
pub(crate) fn configured(settings: Settings) -> PlatformConfig {
    let kind = match settings.kind.as_str() {
        "hackernews" => Kind::HackerNews,
        "lemmy" => Kind::Lemmy,
        "bluesky" => Kind::Bluesky,
        "reddit" => Kind::Reddit,
        "linkedin" => Kind::LinkedIn,
        "facebook" => Kind::Facebook,
        "discourse" => Kind::Discourse,
        "lobsters" => Kind::Lobsters,
        _ => Kind::Feed,
    };
    PlatformConfig {
        kind,
        source: kind.source().unwrap_or(SourceType::Forum),
        name: settings.name,
        base_url: settings.base_url,
        items_url: settings.items_url,
        poll_interval: Some(Duration::from_millis(200)),
        access: settings.access,
    }
}

/// Configures the platform `blogs`, of feeds that customers name.
pub(crate) fn blogs(poll_interval: Duration) -> PlatformConfig {
    PlatformConfig {
        name: "blogs".to_owned(),
        kind: Kind::Feed,
        source: SourceType::Forum,
        base_url: None,
        items_url: None,
        poll_interval: Some(poll_interval),
        access: Access::default(),
    }
}

/// Returns true if this process exports a metric line that begins with `line`.
pub(crate) fn metric(line: &str) -> bool {
    let families = prometheus::gather();
    let text = prometheus::TextEncoder::new().encode_to_string(&families);
    text.unwrap().lines().any(|one| one.starts_with(line))
}

pub(crate) fn watching(term: &str, feeds: &[&str]) -> Instructions {
    Instructions {
        feeds: feeds
            .iter()
            .map(|feed| feed.parse::<FeedName>().unwrap())
            .collect(),
        ..test_support::instructions(term)
    }
}

pub(crate) fn post(platform: &str, title: &str) -> NewPost {
    NewPost {
        platform: platform.to_owned(),
        community: (platform == "lemmy").then(|| "rust".to_owned()),
        title: title.to_owned(),
        author: "ana".to_owned(),
        ..NewPost::default()
    }
}
