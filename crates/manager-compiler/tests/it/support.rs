//! A database, a customer's server, and compilers.

use std::sync::Arc;

use bus::{Bus, InProcess, Received, Subscription};
use domain::{
    Focus, Instructions, ManagerName, Sensitivity,
    manager::{CreateManager, Input, InputFocus, InputType, Manager, Origin, SourceType},
};
use events::{EventSet, ManagerApplied, ManagerNews, ManagerSubmitted, Message};
use runtime::{
    Config,
    config::{Kind, PlatformConfig},
};
use store::managers;
use test_support::{Fixture, Replica, TIMEOUT, TestDatabase, eventually, publish};

pub(crate) const ESPRESSO: &str = include_str!("../../../compiling/tests/it/pages/espresso.html");
pub(crate) const BIKES: &str = include_str!("../../../compiling/tests/it/pages/bikes.html");

pub(crate) struct World {
    pub(crate) database: TestDatabase,
    pub(crate) fixture: Fixture,
    pub(crate) config: Config,
    pub(crate) bus: Arc<dyn Bus>,
}

impl World {
    /// Creates a world with two forums and one network.
    pub(crate) async fn new() -> Self {
        let database = TestDatabase::create().await;
        let fixture = Fixture::create(&mut database.connect().await).await;
        let mut config = test_support::config(&database, store::roles::Service::Compiler);
        let platform = |name: &str, kind, source| PlatformConfig {
            name: name.to_owned(),
            kind,
            source,
            base_url: format!("https://{name}.example/").parse().ok(),
            items_url: None,
            poll_interval: None,
            access: runtime::config::Access::default(),
        };
        config.platforms = vec![
            platform("hackernews", Kind::HackerNews, SourceType::Forum),
            platform("lemmy", Kind::Lemmy, SourceType::Forum),
            platform("blog", Kind::Feed, SourceType::Network),
        ];
        Self {
            database,
            fixture,
            config,
            bus: Arc::new(InProcess::new()),
        }
    }

    pub(crate) fn compiler(&self) -> Replica {
        let run = manager_compiler::run;
        Replica::of("manager-compiler", &self.config, &self.bus, run)
    }

    /// Creates a waiting AUTOMATIC Manager without an event.
    pub(crate) async fn automatic(&self, urls: &[String]) -> ManagerName {
        self.waiting(SourceType::Forum, input(urls)).await
    }

    /// Returns a fixture of another account.
    pub(crate) async fn beside(&self, account: &str) -> Fixture {
        let mut conn = self.database.connect().await;
        self.fixture.beside(&mut conn, account).await
    }

    /// Creates a waiting MANUAL Manager.
    pub(crate) async fn manual(
        &self,
        source: SourceType,
        instructions: Instructions,
    ) -> ManagerName {
        self.waiting(source, Origin::Instructions(instructions))
            .await
    }

    async fn waiting(&self, source: SourceType, origin: Origin) -> ManagerName {
        self.waiting_of(&self.fixture, source, origin).await
    }

    /// Creates a waiting Manager of any account.
    pub(crate) async fn waiting_of(
        &self,
        fixture: &Fixture,
        source: SourceType,
        origin: Origin,
    ) -> ManagerName {
        let draft = CreateManager {
            nickname: "watch".to_owned(),
            enable: true,
            source,
            origin,
            notices: Vec::new(),
            screen: domain::screen::Screen::default(),
        };
        let mut conn = self.database.connect().await;
        let made =
            managers::insert(&mut conn, fixture.namespace, &draft, &test_support::QUOTAS).await;
        made.unwrap().name
    }

    pub(crate) async fn publish_submitted(&self, name: ManagerName, generation: i64) {
        publish(&self.bus, ManagerSubmitted { name, generation }).await;
    }

    pub(crate) async fn get(&self, name: ManagerName) -> Manager {
        let mut conn = self.database.connect().await;
        let found = managers::get(&mut conn, name).await.unwrap();
        found.unwrap()
    }

    /// Waits until the Manager is in `state`: `APPLIED`.
    pub(crate) async fn until(&self, name: ManagerName, state: &str) -> Manager {
        eventually(state, async || self.get(name).await.state.as_str() == state).await;
        self.get(name).await
    }

    pub(crate) fn news(&self) -> Box<dyn Subscription> {
        self.bus.news(ManagerNews::KEYS)
    }
}

/// Pages about something to sell.
pub(crate) fn input(urls: &[String]) -> Origin {
    Origin::Input(Input {
        input_type: InputType::Structured,
        urls: urls.to_vec(),
        focus: InputFocus {
            focus_type: Focus::Sales,
            names: Vec::new(),
        },
        sensitivity: Sensitivity::Balanced,
        sells: None,
    })
}

/// Returns the next ManagerApplied event.
pub(crate) async fn applied(news: &mut Box<dyn Subscription>) -> ManagerApplied {
    loop {
        let next = tokio::time::timeout(TIMEOUT, news.next()).await;
        if let Received::Delivery(delivery) = next.expect("there is news") {
            let message = Message::decode(&delivery.payload).unwrap();
            if let Some(ManagerNews::Applied(event)) = ManagerNews::from_any(message.event) {
                return event;
            }
        }
    }
}
