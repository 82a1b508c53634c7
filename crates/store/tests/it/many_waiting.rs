//! Statements that services repeat read few rows, although one account has thousands of items due.

use std::collections::{BTreeMap, BTreeSet};

use domain::{Id, manager::Mode};
use store::{
    AsyncPgConnection,
    backfills::{self, look_backs},
    deliveries,
    feeds::{self, LeasedFeed},
    managers,
    work::{Leased, Room},
};
use test_support::Fixture;
use uuid::Uuid;

use crate::support::{Look, Reads, Start, reads, run, start};

const ITEMS: usize = 3_000;
/// A tenth of the items.
const MOST: i64 = 300;
/// Number of feeds of a customer with many.
const MANY: usize = 1_000;

/// Adds `count` Managers with a due feed, a waiting backfill, a look-back and a submission each.
async fn fill(conn: &mut AsyncPgConnection, fixture: &Fixture, count: usize) {
    let namespace = fixture.namespace.to_uuid();
    run(conn, "SET session_replication_role = replica").await;
    let manager = format!("md5('{namespace}' || n)::uuid");
    let feed = format!("'lemmy:c' || n || '@{namespace}.example'");
    let many = format!("FROM generate_series(1, {count}) AS n");
    for sql in [
        format!(
            "managers (namespace_id, id, nickname, enable, mode, source, state, input, submit_time, create_time, update_time) \
             SELECT '{namespace}', {manager}, 'm', true, 'AUTOMATIC', 'FORUM', 'PENDING_APPLY', '{{}}', now() - n * interval '1 s', now(), now() {many}"
        ),
        format!(
            "feeds (name, platform, watched, next_poll_time, create_time) \
             SELECT {feed}, 'lemmy', true, now() - n * interval '1 s', now() {many}"
        ),
        format!("feed_watchers SELECT {feed}, '{namespace}', {manager} {many}"),
        format!(
            "backfills (namespace_id, manager_id, feed, notify, create_time) \
             SELECT '{namespace}', {manager}, {feed}, true, now() - n * interval '1 s' {many}"
        ),
        format!(
            "look_backs (feed, notify, since, create_time) SELECT {feed}, false, now(), now() {many}"
        ),
        format!(
            "backfills (namespace_id, manager_id, feed, notify, state, look_back_id) \
             SELECT '{namespace}', {manager}, {feed}, false, 'READING', (SELECT id FROM look_backs WHERE feed = {feed}) {many}"
        ),
    ] {
        run(conn, format!("INSERT INTO {sql}")).await;
    }
    run(conn, "SET session_replication_role = origin").await;
}

/// Name of the feed that [`fill`] adds with this number.
fn feed_of(fixture: &Fixture, number: usize) -> String {
    format!("lemmy:c{number}@{}.example", fixture.namespace.to_uuid())
}

/// Condition on the feeds that [`fill`] adds.
fn theirs(fixture: &Fixture) -> String {
    format!("name LIKE '%{}%'", fixture.namespace.to_uuid())
}

/// The connection is new, as it counts the rows that it reads.
async fn hostile_and_other() -> (Start, Fixture) {
    let mut at = start().await;
    let other = at.fixture.beside(&mut at.conn, "globex").await;
    fill(&mut at.conn, &at.fixture, ITEMS).await;
    fill(&mut at.conn, &other, 1).await;
    // The Managers of this look-back are gone, and the others have been due for longer.
    let orphan = "INSERT INTO look_backs (feed, notify, since) VALUES ('lemmy:none@a.example', false, now())";
    run(&mut at.conn, orphan).await;
    run(&mut at.conn, "ANALYZE").await;
    at.conn = at.database.connect().await;
    run(&mut at.conn, "BEGIN").await;
    (at, other)
}

fn room() -> Room {
    Room::new(8, 0, 8)
}

/// Checks that each of these accounts has a part, and that few rows were read for it.
async fn check(conn: &mut AsyncPgConnection, mut found: Vec<Id>, mut accounts: Vec<Id>, most: i64) {
    found.sort();
    found.dedup();
    accounts.sort();
    assert_eq!(found, accounts);
    let Reads { rows, whole, .. } = reads(conn).await;
    assert!(rows < most, "{rows} rows, whole: {whole}");
}

fn accounts_of<T>(items: &[Leased<T>]) -> Vec<Id> {
    items.iter().map(|item| item.account).collect()
}

async fn lease_feeds(conn: &mut AsyncPgConnection, room: Room) -> Vec<Leased<LeasedFeed>> {
    let mut look = Look::with(Uuid::new_v4(), room);
    let claimed = feeds::lease_due(conn, "lemmy", &mut look.claim()).await;
    claimed.unwrap().items
}

#[tokio::test]
async fn look_for_feeds_reads_few_rows_of_which_some_are_of_other_accounts() {
    let (mut at, other) = hostile_and_other().await;
    let found = accounts_of(&lease_feeds(&mut at.conn, room()).await);
    let accounts = vec![at.fixture.account, other.account];
    // It reads 200 that are due, all but one of one account, then those that are due the longest and those that became due
    // last, 100 each, and who watches them.
    check(&mut at.conn, found, accounts, 4 * MOST).await;
}

/// A large customer begins between two looks at how tables grow ([`store::planner_statistics`]).
#[tokio::test]
async fn look_for_feeds_reads_few_rows_before_the_planner_knows_how_many_there_are() {
    let mut at = start().await;
    let other = at.fixture.beside(&mut at.conn, "globex").await;
    fill(&mut at.conn, &other, 1).await;
    run(&mut at.conn, "ANALYZE").await;
    fill(&mut at.conn, &at.fixture, ITEMS).await;
    at.conn = at.database.connect().await;
    run(&mut at.conn, "BEGIN").await;
    let found = accounts_of(&lease_feeds(&mut at.conn, room()).await);
    // Until then it sorts all that are due, three times.
    let accounts = vec![at.fixture.account, other.account];
    check(&mut at.conn, found, accounts, 50 * MOST).await;
}

#[tokio::test]
async fn new_feed_is_leased_at_once_although_an_account_has_more_due_than_it_may_start() {
    let (mut at, _) = hostile_and_other().await;
    let many = at.fixture.beside(&mut at.conn, "initech").await;
    fill(&mut at.conn, &many, MANY).await;
    let (name, theirs) = (feed_of(&many, 1), theirs(&many));
    let new = format!(
        "UPDATE feeds SET next_poll_time = now() + CASE WHEN name = '{name}' THEN '0' ELSE '1 hour' END::interval \
         WHERE {theirs}"
    );
    assert_eq!(run(&mut at.conn, new).await, MANY);
    let mut room = room();
    while room.admits(at.fixture.account, false) {
        room.take(at.fixture.account, false);
    }
    let leased = lease_feeds(&mut at.conn, room).await;
    assert!(leased.iter().any(|feed| feed.key == name), "{leased:?}");
}

#[tokio::test]
async fn slow_feeds_without_capacity_hide_no_others() {
    let (mut at, other) = hostile_and_other().await;
    let slow = format!("UPDATE feeds SET slow = NOT ({})", theirs(&other));
    run(&mut at.conn, slow).await;
    let found = accounts_of(&lease_feeds(&mut at.conn, room()).await);
    assert_eq!(found, [other.account]);
}

#[tokio::test]
async fn due_feeds_of_an_account_with_many_are_found_over_several_looks() {
    let (mut at, _) = hostile_and_other().await;
    let many = at.fixture.beside(&mut at.conn, "initech").await;
    fill(&mut at.conn, &many, MANY).await;
    // Two are due, which are neither among those that are due the longest nor among those that became due last.
    let due = format!(
        "UPDATE feeds SET next_poll_time = now() + CASE WHEN place IN (1, {MANY}) THEN '-1000 s' ELSE '1 hour' END::interval \
         FROM ( \
             SELECT name, row_number() OVER (ORDER BY hashtextextended(name, 0)) AS place FROM feeds WHERE {} \
         ) AS placed WHERE feeds.name = placed.name",
        theirs(&many)
    );
    assert_eq!(run(&mut at.conn, due).await, MANY);
    let mut found = BTreeSet::new();
    // A look samples two thirds of the feeds: fewer than one in a billion runs do not find both.
    for _ in 0..20 {
        let leased = lease_feeds(&mut at.conn, room()).await;
        let own = leased.iter().filter(|feed| feed.account == many.account);
        found.extend(own.map(|feed| feed.key.clone()));
        if found.len() == 2 {
            return;
        }
    }
    panic!("found only {found:?}");
}

#[tokio::test]
async fn look_for_backfills_reads_few_rows() {
    let (mut at, other) = hostile_and_other().await;
    let mut look = Look::with(Uuid::new_v4(), room());
    let waiting = backfills::waiting(&mut at.conn, &["lemmy"], &look.claim(), 1_000).await;
    let waiting = waiting.unwrap();
    assert_eq!(waiting.len(), 9, "eight, and the only one of the other");
    let found = waiting.iter().map(|due| due.item.account).collect();
    let accounts = vec![at.fixture.account, other.account];
    check(&mut at.conn, found, accounts, MOST).await;
}

#[tokio::test]
async fn look_for_look_backs_reads_few_rows_of_which_some_are_of_other_accounts() {
    let (mut at, other) = hostile_and_other().await;
    let mut look = Look::with(Uuid::new_v4(), room());
    let leased = look_backs::lease(&mut at.conn, &["lemmy"], &mut look.claim()).await;
    let found = accounts_of(&leased.unwrap().items);
    let accounts = vec![at.fixture.account, other.account];
    // It reads the 200 that are due for longest, all of one account, and who waits for them.
    check(&mut at.conn, found, accounts, 4 * MOST).await;
}

#[tokio::test]
async fn look_back_of_no_manager_is_found_once_others_have_had_a_step() {
    let (mut at, _) = hostile_and_other().await;
    let later = "UPDATE look_backs SET next_time = now() + interval '1 hour' WHERE id > 100 AND feed NOT LIKE '%none%'";
    run(&mut at.conn, later).await;
    let mut look = Look::with(Uuid::new_v4(), room());
    let leased = look_backs::lease(&mut at.conn, &["lemmy"], &mut look.claim()).await;
    assert!(accounts_of(&leased.unwrap().items).contains(&Id::NIL));
}

#[tokio::test]
async fn look_for_compilations_reads_few_rows() {
    let (mut at, other) = hostile_and_other().await;
    let mut look = Look::with(Uuid::new_v4(), room());
    let claimed = managers::claim(&mut at.conn, Mode::Automatic, &mut look.claim()).await;
    let found = accounts_of(&claimed.unwrap().items);
    let accounts = vec![at.fixture.account, other.account];
    check(&mut at.conn, found, accounts, MOST).await;
}

#[tokio::test]
async fn managers_beyond_a_number_are_counted_without_reading_them() {
    let (mut at, _) = hostile_and_other().await;
    let applied = "UPDATE managers SET state = CASE WHEN hashtext(id::text) % 100 = 0 THEN 'APPLY_FAILED' ELSE 'APPLIED' END \
         WHERE id NOT IN (SELECT id FROM managers ORDER BY submit_time DESC LIMIT 21)";
    run(&mut at.conn, applied).await;
    run(&mut at.conn, "COMMIT").await;
    run(&mut at.conn, "VACUUM ANALYZE managers").await;
    let count = async |conn: &mut AsyncPgConnection, most| {
        let states = managers::count_by_state(conn, most).await.unwrap();
        let states = states.into_iter().map(|found| (found.state, found.count));
        states.collect::<BTreeMap<_, _>>()
    };
    let exact = count(&mut at.conn, 10_000).await;
    assert_eq!(exact["PENDING_APPLY"], 21);
    assert_eq!(exact.values().sum::<i64>(), 3_001);
    at.conn = at.database.connect().await;
    assert_eq!(count(&mut at.conn, 100).await, exact, "just analyzed");
    let Reads { rows, whole, .. } = reads(&mut at.conn).await;
    assert!(rows < MOST, "{rows} rows, whole: {whole}");
}

#[tokio::test]
async fn a_sweep_looks_at_some_connections_and_the_next_one_goes_on() {
    let mut at = start().await;
    run(&mut at.conn, "SET session_replication_role = replica").await;
    for sql in [
        "INSERT INTO deliveries (namespace_id, connection_id, id, create_time, update_time, manager_id, scan_id, state, next_attempt_time) \
         SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), now(), now(), gen_random_uuid(), gen_random_uuid(), 'PENDING', now() \
         FROM generate_series(1, 3000)",
        "INSERT INTO connections (namespace_id, id, nickname, url, method, headers_sealed, state, create_time, update_time) \
         SELECT gen_random_uuid(), gen_random_uuid(), 'c', '', 'POST', '', 'DISABLED', now(), now() FROM generate_series(1, 3000)",
        "ANALYZE",
    ] {
        run(&mut at.conn, sql).await;
    }
    let mut conn = at.database.connect().await;
    run(&mut conn, "BEGIN").await;
    let first = deliveries::find_waiting(&mut conn, None, 50).await.unwrap();
    assert_eq!(first.gone.len(), 50);
    deliveries::count_unfinished(&mut conn, 50).await.unwrap();
    let Reads { rows, whole, .. } = reads(&mut conn).await;
    assert!(rows < MOST, "{rows} rows, whole: {whole}");
    let (mut gone, mut last) = (first.gone, first.last);
    while last.is_some() {
        let next = deliveries::find_waiting(&mut conn, last, 1_000)
            .await
            .unwrap();
        gone.extend(next.gone);
        last = next.last;
    }
    assert_eq!(gone.len(), 3_000);
    gone.sort();
    gone.dedup();
    assert_eq!(gone.len(), 3_000, "each once");
}
