//! Default rows that a test needs.

use diesel_async::AsyncPgConnection;
use domain::{
    ConnectionName, Id, Instructions, ManagerName, Post, PostType, Subforum, Timestamp, User,
    connection::{CreateConnection, Format, Headers, Method},
    instructions::Term,
    manager::{CreateManager, Origin, SourceType},
    namespace::CreateNamespace,
};
use store::{connections, keys, managers, namespaces, quotas::Limits, seal::Sealer};

/// Quotas that no test exceeds.
pub const QUOTAS: Limits = Limits {
    namespaces: 1_000_000,
    managers: 1_000_000,
    connections: 1_000_000,
    feeds: 1_000_000,
    content_bytes: 1_000_000_000,
    scans_per_day: 1_000_000,
};

/// An account with a Namespace, and the sealer of its secrets.
#[derive(Debug, Clone)]
pub struct Fixture {
    pub account: Id,
    pub namespace: Id,
    pub sealer: Sealer,
}

impl Fixture {
    /// # Panics
    /// If the database refuses it; the same holds for all functions below.
    pub async fn create(conn: &mut AsyncPgConnection) -> Self {
        let sealer = Sealer::new([("test".to_owned(), [7; 32])]).expect("a key makes a sealer");
        Self::of(conn, "acme", sealer).await
    }

    /// Creates the same for another account.
    pub async fn beside(&self, conn: &mut AsyncPgConnection, account: &str) -> Self {
        Self::of(conn, account, self.sealer.clone()).await
    }

    async fn of(conn: &mut AsyncPgConnection, account: &str, sealer: Sealer) -> Self {
        let account = keys::ensure_account(conn, account, Timestamp::now())
            .await
            .expect("an account is made");
        let draft = CreateNamespace {
            nickname: "ours".to_owned(),
            mutes: Vec::new(),
        };
        let namespace = namespaces::insert(conn, account, &draft, &QUOTAS)
            .await
            .expect("a Namespace is made");
        Self {
            account,
            namespace: namespace.name.namespace,
            sealer,
        }
    }

    pub async fn connection(&self, conn: &mut AsyncPgConnection, url: &str) -> ConnectionName {
        let headers = Headers([("x-secret".to_owned(), "hush".to_owned())].into());
        let draft = CreateConnection {
            nickname: "hook".to_owned(),
            url: url.to_owned(),
            method: Method::Post,
            headers,
            format: Format::default(),
            max_per_second: None,
            signing_secrets: Vec::new(),
            events: Vec::new(),
            digest: None,
        };
        connections::insert(conn, &self.sealer, self.namespace, &draft)
            .await
            .expect("a Connection is made")
            .name
    }

    /// Creates a Manager that waits for the compiler.
    pub async fn manager(
        &self,
        conn: &mut AsyncPgConnection,
        instructions: &Instructions,
        notices: &[ConnectionName],
    ) -> ManagerName {
        let draft = CreateManager {
            nickname: "watch".to_owned(),
            enable: true,
            source: SourceType::Forum,
            origin: Origin::Instructions(instructions.clone()),
            notices: notices.iter().copied().map(Into::into).collect(),
            screen: domain::screen::Screen::default(),
        };
        managers::insert(conn, self.namespace, &draft, &QUOTAS)
            .await
            .expect("a Manager is made")
            .name
    }

    /// Creates an active Manager.
    pub async fn applied_manager(
        &self,
        conn: &mut AsyncPgConnection,
        instructions: &Instructions,
        notices: &[ConnectionName],
    ) -> ManagerName {
        let name = self.manager(conn, instructions, notices).await;
        let version = managers::apply(conn, name, 1, instructions, &QUOTAS, Timestamp::now())
            .await
            .expect("it is applied");
        assert!(version.is_some(), "generation 1 is the first");
        name
    }
}

/// Instructions that match posts with `term`, on `hackernews:newest`.
pub fn instructions(term: &str) -> Instructions {
    Instructions {
        feeds: vec!["hackernews:newest".parse().expect("a feed's name")],
        include: vec![Term {
            text: term.to_owned(),
            weight: 1.0,
        }],
        threshold: Some(1.0),
        ..Instructions::default()
    }
}

/// A forum post with this id and title.
pub fn post(id: &str, title: &str) -> Post {
    Post {
        post_type: PostType::ForumLink,
        time: Timestamp::now(),
        id: id.to_owned(),
        title: Some(title.to_owned()),
        text: Some("text".to_owned()),
        url: format!("https://forum.example/{id}"),
        subforum: Some(Subforum {
            id: "s".to_owned(),
            name: "Sub".to_owned(),
            url: "https://forum.example/s".to_owned(),
        }),
        user: User {
            id: "u".to_owned(),
            name: "User".to_owned(),
            url: "https://forum.example/u".to_owned(),
        },
    }
}
