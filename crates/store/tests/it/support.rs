//! Helpers for several tests.

use std::collections::HashMap;

use diesel::{
    QueryableByName, sql_query,
    sql_types::{BigInt, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    FeedName, ManagerName, Match, Post, ScanName, Timestamp, field::Field, list::ListQuery,
};
use store::{
    Page,
    fair::Turns,
    plans, purges,
    scans::{self, NewScan, Origin, ScanCounter},
    work::{Claim, Room},
};
use test_support::{Fixture, TestDatabase};
use uuid::Uuid;

/// Held by tests that lose a server, because all pools of the process then discard their idle connections, and by tests
/// that need theirs.
pub(crate) static LOST_SERVER: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

pub(crate) struct Start {
    pub(crate) database: TestDatabase,
    pub(crate) conn: AsyncPgConnection,
    pub(crate) fixture: Fixture,
}

pub(crate) async fn start() -> Start {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    let fixture = Fixture::create(&mut conn).await;
    Start {
        database,
        conn,
        fixture,
    }
}

/// Runs one statement; returns the number of rows it affected.
pub(crate) async fn run(conn: &mut AsyncPgConnection, sql: impl Into<String>) -> usize {
    let sql = sql.into();
    sql_query(sql.clone())
        .execute(conn)
        .await
        .unwrap_or_else(|error| panic!("`{sql}`: {error}"))
}

/// Lets the replica die: its heartbeat ends.
pub(crate) async fn die(conn: &mut AsyncPgConnection, replica: uuid::Uuid) {
    let old = "clock_timestamp() - interval '1 minute'";
    let sql = format!("UPDATE replicas SET heartbeat_time = {old} WHERE id = '{replica}'");
    assert_eq!(run(conn, sql).await, 1);
}

/// Returns the number that `SELECT … AS number` selects.
pub(crate) async fn number(conn: &mut AsyncPgConnection, sql: &str) -> i64 {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = BigInt)]
        number: i64,
    }
    let row: Row = sql_query(sql).get_result(conn).await.unwrap();
    row.number
}

/// Rows of tables and indexes that statements read in one transaction so far, blocks, and tables read as a whole.
#[derive(QueryableByName)]
pub(crate) struct Reads {
    #[diesel(sql_type = BigInt)]
    pub(crate) blocks: i64,
    #[diesel(sql_type = BigInt)]
    pub(crate) rows: i64,
    #[diesel(sql_type = Text)]
    pub(crate) whole: String,
}

pub(crate) async fn reads(conn: &mut AsyncPgConnection) -> Reads {
    sql_query(
        "SELECT coalesce(sum(pg_stat_get_xact_blocks_fetched(oid)), 0)::bigint AS blocks, \
             coalesce(sum(pg_stat_get_xact_tuples_returned(oid)), 0)::bigint AS rows, \
             coalesce(string_agg(relname, ', ' ORDER BY relname) FILTER (WHERE relkind = 'r' \
                 AND pg_stat_get_xact_numscans(oid) > 0 AND pg_stat_get_xact_tuples_returned(oid) > 1000), '') AS whole \
         FROM pg_class WHERE relkind IN ('r', 'i') AND relnamespace = 'public'::regnamespace",
    )
    .get_result(conn)
    .await
    .unwrap()
}

/// Runs one step of the purge that has been due the longest. Returns the number of rows; `None` if none is due, or
/// another replica works on it.
pub(crate) async fn purge_step(conn: &mut AsyncPgConnection) -> Option<usize> {
    let due = purges::due(conn, &[]).await.unwrap();
    let next = due.into_iter().next()?;
    purges::step(conn, &next.item).await.unwrap()
}

/// A look for work by a replica with much capacity.
pub(crate) struct Look {
    pub(crate) replica: Uuid,
    room: Room,
    turns: Turns,
}

impl Look {
    pub(crate) fn of(replica: Uuid) -> Self {
        Self::with(replica, Room::new(100, 100, 100))
    }

    pub(crate) fn with(replica: Uuid, room: Room) -> Self {
        Self {
            replica,
            room,
            turns: Turns::default(),
        }
    }

    pub(crate) fn claim(&mut self) -> Claim<'_> {
        Claim {
            replica: self.replica,
            take_over: true,
            known: &[],
            room: &mut self.room,
            turns: &mut self.turns,
        }
    }
}

/// Makes a Manager watch these feeds and no others; returns the version of the plans.
pub(crate) async fn watch(
    conn: &mut AsyncPgConnection,
    manager: ManagerName,
    feeds: &[&str],
) -> i64 {
    let feeds: Vec<FeedName> = feeds.iter().map(|name| name.parse().unwrap()).collect();
    let quotas = &test_support::QUOTAS;
    plans::record_change(conn, manager, &feeds, quotas, Timestamp::now())
        .await
        .unwrap()
}

pub(crate) fn feed() -> FeedName {
    "hackernews:newest".parse().unwrap()
}

pub(crate) fn matched(score: f64) -> Match {
    Match {
        score,
        terms: vec!["rust".to_owned()],
        ..Match::default()
    }
}

pub(crate) fn new_scan(manager: ManagerName, post: &Post) -> NewScan<'_> {
    NewScan {
        manager,
        post,
        matched: matched(1.0),
    }
}

/// Creates one Scan of each post.
pub(crate) async fn record(
    conn: &mut AsyncPgConnection,
    manager: ManagerName,
    posts: &[Post],
) -> Vec<ScanName> {
    let matches: Vec<_> = posts.iter().map(|post| new_scan(manager, post)).collect();
    scans::record(conn, &feed(), &matches, Timestamp::now())
        .await
        .unwrap()
}

/// Creates Scans of past posts.
pub(crate) async fn record_past(
    conn: &mut AsyncPgConnection,
    matches: &[NewScan<'_>],
    silently: bool,
) -> Vec<ScanName> {
    let origin = Origin::Past {
        silently,
        catch_up: &HashMap::new(),
    };
    let (now, mut counter) = (Timestamp::now(), ScanCounter::new(u32::MAX));
    scans::record_from(conn, &feed(), 0, matches, now, origin, &mut counter)
        .await
        .unwrap()
        .made
}

/// Parses a list's query parameters like the gateway.
pub(crate) fn list_query(
    fields: &'static [Field],
    page_size: u32,
    token: Option<&str>,
    filter: &str,
    order: &str,
) -> ListQuery {
    let size = page_size.to_string();
    ListQuery::parse(
        "parent",
        fields,
        Some(&size),
        token,
        Some(filter),
        Some(order),
    )
    .unwrap_or_else(|issues| panic!("filter `{filter}`, order `{order}`: {issues:?}"))
}

/// Returns every item of a list, page by page.
pub(crate) async fn walk<T>(mut page: impl AsyncFnMut(Option<&str>) -> Page<T>) -> Vec<T> {
    let mut items = Vec::new();
    let mut token: Option<String> = None;
    loop {
        let Page {
            items: more,
            next_page_token,
        } = page(token.as_deref()).await;
        assert!(!more.is_empty() || next_page_token.is_none());
        items.extend(more);
        match next_page_token {
            Some(next) => token = Some(next),
            None => return items,
        }
        assert!(items.len() < 10_000, "the pages do not end");
    }
}
