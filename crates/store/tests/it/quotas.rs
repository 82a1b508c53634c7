//! Quotas of accounts, including several transactions that compete for the last unit.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use diesel_async::AsyncConnection;
use domain::{
    FeedName, ManagerName, Post, Timestamp,
    manager::{
        ManagerChange,
        health::{Health, HealthReason},
    },
    namespace::{CreateNamespace, NamespaceChange},
    screen::{Mute, MuteType},
};
use futures::future::join_all;
use store::{
    AsyncPgConnection, Error, backfills,
    fair::Turns,
    feedback, managers, namespaces,
    quotas::{self, Change, Limits, Overrides, Resource},
    replicas,
    scans::{self, NewScan, Origin, ScanCounter},
    work::{Claim, Room, table},
};
use test_support::{Fixture, TestDatabase, instructions, post};
use uuid::Uuid;

use crate::support::{Look, Start, feed, new_scan, number, run, start};

const DEFAULTS: Limits = Limits {
    namespaces: 2,
    managers: 3,
    connections: 3,
    feeds: 2,
    content_bytes: 1_000_000,
    scans_per_day: 5,
};

fn feeds(names: &[&str]) -> Vec<FeedName> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

/// Creates a Manager as the gateway does; returns true if the quota allowed it.
async fn create(database: &TestDatabase, fixture: &Fixture) -> bool {
    let mut conn = database.connect().await;
    conn.transaction(async |conn| {
        let (account, kind) = (fixture.account, Resource::Manager);
        if quotas::check_creation(conn, account, kind, &DEFAULTS)
            .await?
            .is_some()
        {
            return Ok(false);
        }
        fixture.manager(conn, &instructions("kettle"), &[]).await;
        Ok::<_, Error>(true)
    })
    .await
    .unwrap()
}

/// Applies a new Manager as the compiler does; returns true if the quota allowed its feeds.
async fn watch(database: &TestDatabase, fixture: &Fixture, names: &[&str]) -> bool {
    let mut conn = database.connect().await;
    let mut instructions = instructions("kettle");
    instructions.feeds = feeds(names);
    let name = fixture.manager(&mut conn, &instructions, &[]).await;
    let applied = conn
        .transaction(async |conn| {
            managers::apply(conn, name, 1, &instructions, &DEFAULTS, Timestamp::now()).await
        })
        .await;
    match applied {
        Ok(version) => version.is_some(),
        Err(Error::QuotaExceeded(exceeded)) => {
            assert_eq!(exceeded.quota, "feeds");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_lowered_quota_refuses_only_what_grows() {
    let Start {
        database,
        mut conn,
        fixture,
    } = start().await;
    assert!(watch(&database, &fixture, &["a:1", "a:2"]).await);
    let change = Change {
        managers: Some(Some(0)),
        feeds: Some(Some(1)),
        ..Change::default()
    };
    let account = quotas::set(&mut conn, "acme", &change).await.unwrap();
    assert_eq!(account, Some(fixture.account));
    let expected = Overrides {
        managers: Some(0),
        connections: None,
        feeds: Some(1),
        ..Overrides::default()
    };
    let set = quotas::list(&mut conn).await.unwrap();
    assert_eq!(set, [("acme".to_owned(), expected)]);
    assert!(!create(&database, &fixture).await);

    // The feeds that it already has, and another Manager with one of them.
    assert!(watch(&database, &fixture, &["a:2"]).await);
    assert!(!watch(&database, &fixture, &["a:3"]).await);
    let usage = quotas::usage(&mut conn, fixture.account, &DEFAULTS).await;
    let usage = usage.unwrap();
    assert_eq!((usage.limits.namespaces, usage.used.namespaces), (2, 1));
    assert_eq!((usage.limits.managers, usage.used.managers), (0, 3));
    assert_eq!((usage.limits.connections, usage.used.connections), (3, 0));
    assert_eq!((usage.limits.feeds, usage.used.feeds), (1, 2));

    // Back to the default.
    let change = Change {
        managers: Some(None),
        ..Change::default()
    };
    quotas::set(&mut conn, "acme", &change).await.unwrap();
    run(&mut conn, "DELETE FROM managers").await;
    assert!(create(&database, &fixture).await);
}

#[tokio::test]
async fn a_disabled_manager_watches_nothing_until_it_is_enabled() {
    let Start {
        database,
        mut conn,
        fixture,
    } = start().await;
    let mut instructions = instructions("kettle");
    instructions.feeds = feeds(&["a:1", "a:2", "a:3"]);
    let name = fixture.manager(&mut conn, &instructions, &[]).await;
    run(&mut conn, "UPDATE managers SET enable = false").await;
    let now = Timestamp::now();
    let applied = managers::apply(&mut conn, name, 1, &instructions, &DEFAULTS, now).await;
    assert!(applied.unwrap().is_some());

    let enable = ManagerChange {
        enable: Some(true),
        ..ManagerChange::default()
    };
    let mut enabled = async |quotas| {
        conn.transaction(async |conn| {
            let current = managers::lock(conn, name).await?.unwrap();
            managers::update(conn, current, &enable, &quotas, now).await
        })
        .await
    };
    let Err(Error::QuotaExceeded(refused)) = enabled(DEFAULTS).await else {
        panic!("enabled");
    };
    assert_eq!(
        (refused.quota, refused.limit, refused.wanted),
        ("feeds", 2, 3)
    );
    let room = Limits {
        feeds: 3,
        ..DEFAULTS
    };
    assert!(enabled(room).await.unwrap().manager.enable);
    drop(database);
}

#[tokio::test]
async fn reapplied_instructions_watch_no_more_feeds_than_the_quota() {
    let Start {
        database,
        mut conn,
        fixture,
    } = start().await;
    let mut kettle = instructions("kettle");
    kettle.feeds = feeds(&["a:1", "a:2"]);
    let name = fixture.applied_manager(&mut conn, &kettle, &[]).await;
    let mut again = instructions("teapot");
    let mut reapply = async |names: &[&str]| {
        again.feeds = feeds(names);
        let (again, now) = (&again, Timestamp::now());
        conn.transaction(async |conn| feedback::reapply(conn, name, 1, again, &DEFAULTS, now).await)
            .await
    };
    let refused = reapply(&["a:1", "a:2", "a:3"]).await;
    assert!(matches!(refused, Err(Error::QuotaExceeded(_))));
    let watched = "feed_watchers WHERE feed IN ('a:1', 'a:2')";
    assert_eq!(database.count(watched).await, 2);
    assert_eq!(database.count("feed_watchers").await, 2);
    assert_eq!(reapply(&["a:1", "a:2"]).await.unwrap(), Some(2));
    // Other feeds, and no more than before.
    assert_eq!(reapply(&["a:3", "a:4"]).await.unwrap(), Some(3));
}

#[tokio::test]
async fn instructions_and_mutes_have_no_more_bytes_than_the_quota() {
    let Start {
        database,
        mut conn,
        fixture,
    } = start().await;
    let limits = |content_bytes| Limits {
        content_bytes,
        ..test_support::QUOTAS
    };
    let used = async || {
        let mut conn = database.connect().await;
        let usage = quotas::usage(&mut conn, fixture.account, &DEFAULTS).await;
        usage.unwrap().used.content_bytes
    };
    let refused = |error: Error| match error {
        Error::QuotaExceeded(exceeded) => (exceeded.quota, exceeded.limit, exceeded.wanted),
        error => panic!("{error}"),
    };
    assert_eq!(used().await, 0);
    let kettle = instructions("kettle");
    let name = fixture.manager(&mut conn, &kettle, &[]).await;
    let submitted = used().await;
    let stored =
        "SELECT octet_length(submitted_instructions::text)::bigint AS number FROM managers";
    assert_eq!(i64::from(submitted), number(&mut conn, stored).await);

    // Compiled instructions that equal the submitted ones add nothing.
    let now = Timestamp::now();
    let exact = limits(submitted);
    let applied = managers::apply(&mut conn, name, 1, &kettle, &exact, now).await;
    assert!(applied.unwrap().is_some());
    assert_eq!(used().await, submitted);
    let longer = instructions("kettles");
    let again = conn
        .transaction(async |conn| feedback::reapply(conn, name, 1, &longer, &exact, now).await)
        .await;
    assert_eq!(
        refused(again.unwrap_err()),
        ("contentBytes", submitted, submitted + 1)
    );
    assert_eq!(used().await, submitted, "the old ones stay");

    let mute = Mute {
        mute_type: MuteType::Author,
        value: "pat".to_owned(),
        expire_time: None,
    };
    let change = ManagerChange {
        mutes: Some(vec![mute.clone()]),
        ..ManagerChange::default()
    };
    let muted = conn
        .transaction(async |conn| {
            let current = managers::lock(conn, name).await?.unwrap();
            managers::update(conn, current, &change, &exact, now).await
        })
        .await;
    assert_eq!(refused(muted.unwrap_err()).0, "contentBytes");

    // Mutes of Namespaces count too; of two at once, only one fits.
    let change = NamespaceChange {
        mutes: Some(vec![mute.clone()]),
        ..NamespaceChange::default()
    };
    let bytes = u32::try_from(serde_json::to_string(&change.mutes).unwrap().len()).unwrap();
    let room = limits(submitted + bytes + 10);
    let other = CreateNamespace {
        nickname: "other".to_owned(),
        mutes: Vec::new(),
    };
    let other = namespaces::insert(&mut conn, fixture.account, &other, &exact).await;
    let ids = [fixture.namespace, other.unwrap().name.namespace];
    let updates = ids.map(|id| {
        let (database, change, room) = (&database, &change, &room);
        async move {
            let mut conn = database.connect().await;
            conn.transaction(async |conn| {
                quotas::lock(conn, fixture.account, room).await?;
                let current = namespaces::lock(conn, id).await?.unwrap();
                namespaces::update(conn, current, change, room, now).await
            })
            .await
        }
    });
    let results = join_all(updates).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);

    // Rows from before the column are counted from their values.
    let counted = used().await;
    run(&mut conn, "UPDATE managers SET content_bytes = NULL").await;
    run(&mut conn, "UPDATE namespaces SET content_bytes = NULL").await;
    assert_eq!(used().await, counted);

    // What is over a lowered quota may shrink.
    let none = NamespaceChange {
        mutes: Some(Vec::new()),
        ..NamespaceChange::default()
    };
    for id in ids {
        let current = namespaces::lock(&mut conn, id).await.unwrap().unwrap();
        namespaces::update(&mut conn, current, &none, &limits(0), now)
            .await
            .unwrap();
    }
    assert_eq!(used().await, submitted);
}

#[tokio::test]
async fn quotas_are_listed_and_set_by_the_accounts_name() {
    let mut at = start().await;
    at.fixture.beside(&mut at.conn, "globex").await;
    let change = Change {
        connections: Some(Some(7)),
        ..Change::default()
    };
    assert!(
        quotas::set(&mut at.conn, "globex", &change)
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(
        quotas::set(&mut at.conn, "nobody", &change).await.unwrap(),
        None
    );
    let globex = Overrides {
        connections: Some(7),
        ..Overrides::default()
    };
    let expected = [
        ("acme".to_owned(), Overrides::default()),
        ("globex".to_owned(), globex),
    ];
    assert_eq!(quotas::list(&mut at.conn).await.unwrap(), expected);
}

fn posts(from: usize, count: usize) -> Vec<Post> {
    let numbers = from..from + count;
    numbers
        .map(|n| post(&format!("hackernews:{n}"), "A kettle"))
        .collect()
}

/// Records matches of these posts under the default quota; returns the number of Scans created and refused.
async fn offer(
    conn: &mut AsyncPgConnection,
    manager: ManagerName,
    posts: &[Post],
    origin: Origin<'_>,
) -> (usize, usize) {
    let matches: Vec<NewScan<'_>> = posts.iter().map(|post| new_scan(manager, post)).collect();
    loop {
        let offered = conn
            .transaction(async |conn| {
                let (offered, counter) = uncounted(conn, &matches, origin).await?;
                counter.store(conn).await?;
                Ok(offered)
            })
            .await;
        match offered {
            Err(Error::QuotaRace(_)) => {}
            offered => return offered.unwrap(),
        }
    }
}

/// Everything in [`offer`] except the last statement.
async fn uncounted(
    conn: &mut AsyncPgConnection,
    matches: &[NewScan<'_>],
    origin: Origin<'_>,
) -> Result<((usize, usize), ScanCounter), Error> {
    let mut counter = ScanCounter::new(DEFAULTS.scans_per_day);
    let now = Timestamp::now();
    let recorded = scans::record_from(conn, &feed(), 0, matches, now, origin, &mut counter).await?;
    Ok(((recorded.made.len(), recorded.refused.len()), counter))
}

async fn catch_up(conn: &mut AsyncPgConnection) -> usize {
    let window = Duration::from_secs(3_600);
    backfills::catch_up(conn, window, DEFAULTS.scans_per_day)
        .await
        .unwrap()
}

async fn health(conn: &mut AsyncPgConnection, manager: ManagerName) -> Health {
    let read = managers::get(conn, manager).await.unwrap().unwrap();
    read.health.unwrap()
}

const NEXT_DAY: &str = "UPDATE account_days SET day = day - 1";
const USED: &str = "SELECT coalesce(sum(scans), 0)::bigint AS number FROM account_days";

#[tokio::test]
async fn two_scanners_at_once_make_no_more_scans_than_the_quota() {
    let at = start().await;
    let mut conn = at.conn;
    let mut offers = Vec::new();
    for n in 0..8 {
        let manager = at
            .fixture
            .manager(&mut conn, &instructions("kettle"), &[])
            .await;
        let mut conn = at.database.connect().await;
        offers.push(async move {
            // Some of the posts are the same.
            offer(&mut conn, manager, &posts(n, 3), Origin::Poll).await
        });
    }
    let made = join_all(offers).await;
    assert_eq!(made.iter().map(|(made, _)| made).sum::<usize>(), 5);
    assert_eq!(
        made.iter().map(|(_, refused)| refused).sum::<usize>(),
        8 * 3 - 5
    );
    assert_eq!(number(&mut conn, USED).await, 5);
    assert_eq!(
        number(&mut conn, "SELECT count(*) AS number FROM scans").await,
        5
    );
    let keys = "SELECT count(*) AS number FROM scan_keys";
    assert_eq!(
        number(&mut conn, keys).await,
        5,
        "the others can be claimed again"
    );
    let usage = quotas::usage(&mut conn, at.fixture.account, &DEFAULTS)
        .await
        .unwrap();
    assert_eq!(
        (usage.limits.scans_per_day, usage.used.scans_per_day),
        (5, 5)
    );

    // Another account has a separate counter.
    let other = at.fixture.beside(&mut conn, "globex").await;
    let theirs = other.manager(&mut conn, &instructions("kettle"), &[]).await;
    assert_eq!(
        offer(&mut conn, theirs, &posts(0, 3), Origin::Poll).await,
        (3, 0)
    );
}

#[tokio::test]
async fn transactions_of_one_account_wait_for_each_other_only_to_commit() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let mut managers = Vec::new();
    for _ in 0..2 {
        managers.push(at.fixture.manager(conn, &instructions("kettle"), &[]).await);
    }
    // Different posts, because one transaction stores a new post while others wait for it.
    let (first, second) = (posts(0, 4), posts(10, 3));
    let matches: Vec<_> = { first.iter() }
        .map(|post| new_scan(managers[0], post))
        .collect();

    // The first transaction stays open before its last statement.
    run(conn, "BEGIN").await;
    let (offered, counter) = uncounted(conn, &matches, Origin::Poll).await.unwrap();
    assert_eq!(offered, (4, 0));
    let mut other = at.database.connect().await;
    // If it had to wait, it would wait for ever.
    run(&mut other, "SET lock_timeout = '5s'").await;
    assert_eq!(
        offer(&mut other, managers[1], &second, Origin::Poll).await,
        (3, 0)
    );

    // Both together exceed the quota. The later one starts again, and decides by the new counter.
    let counted = counter.store(conn).await;
    assert!(matches!(counted, Err(Error::QuotaRace(_))), "{counted:?}");
    run(conn, "ROLLBACK").await;
    assert_eq!(number(conn, USED).await, 3);
    assert_eq!(offer(conn, managers[0], &first, Origin::Poll).await, (2, 2));
    assert_eq!(number(conn, USED).await, 5);
}

#[tokio::test]
async fn transactions_with_scans_of_several_accounts_never_wait_in_a_circle() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let quota = Change {
        scans_per_day: Some(Some(1_000)),
        ..Change::default()
    };
    let mut fixtures = Vec::new();
    for name in ["globex", "hooli", "initech"] {
        fixtures.push(at.fixture.beside(conn, name).await);
        quotas::set(conn, name, &quota).await.unwrap();
    }
    let mut works = Vec::new();
    for n in 0..8 {
        let mut managers = Vec::new();
        for fixture in &fixtures {
            managers.push(fixture.manager(conn, &instructions("kettle"), &[]).await);
        }
        // Each in another order.
        managers.rotate_left(n % 3);
        if n % 2 == 0 {
            managers.reverse();
        }
        let mut conn = at.database.connect().await;
        works.push(async move {
            for turn in 0..5 {
                let posts = posts(n * 100 + turn * 10, 2);
                conn.transaction(async |conn| {
                    let mut counter = ScanCounter::new(0);
                    // Like a poll that is stored in halves.
                    for manager in &managers {
                        let matches: Vec<_> =
                            posts.iter().map(|post| new_scan(*manager, post)).collect();
                        let (now, origin) = (Timestamp::now(), Origin::Poll);
                        scans::record_from(conn, &feed(), 0, &matches, now, origin, &mut counter)
                            .await?;
                    }
                    counter.store(conn).await
                })
                .await
                .unwrap();
            }
        });
    }
    join_all(works).await;
    assert_eq!(number(conn, USED).await, 8 * 5 * 2 * 3);
    let counted = "SELECT count(*) AS number FROM account_days WHERE scans = 80";
    assert_eq!(number(conn, counted).await, 3);
}

#[tokio::test]
async fn one_transaction_that_records_twice_keeps_to_the_quota() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let manager = at.fixture.manager(conn, &instructions("kettle"), &[]).await;
    let posts = posts(0, 7);
    let recorded = conn.transaction(async |conn| {
        let mut counter = ScanCounter::new(DEFAULTS.scans_per_day);
        let mut offered = Vec::new();
        for posts in posts.chunks(4) {
            let matches: Vec<_> = posts.iter().map(|post| new_scan(manager, post)).collect();
            let (now, origin) = (Timestamp::now(), Origin::Poll);
            let recorded =
                scans::record_from(conn, &feed(), 0, &matches, now, origin, &mut counter).await?;
            offered.push((recorded.made.len(), recorded.refused.len()));
        }
        counter.store(conn).await?;
        Ok::<_, Error>(offered)
    });
    assert_eq!(recorded.await.unwrap(), [(4, 0), (1, 2)]);
    assert_eq!(number(conn, USED).await, 5);
}

#[tokio::test]
async fn a_scan_that_is_not_made_spends_nothing() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let manager = at.fixture.manager(conn, &instructions("kettle"), &[]).await;
    run(conn, "UPDATE managers SET max_scans_per_day = 2").await;
    assert_eq!(
        offer(conn, manager, &posts(0, 4), Origin::Poll).await,
        (2, 0)
    );
    assert_eq!(
        number(conn, USED).await,
        2,
        "the Manager's own bound held the others back"
    );
    assert_eq!(
        offer(conn, manager, &posts(0, 4), Origin::Poll).await,
        (0, 0)
    );
    assert_eq!(number(conn, USED).await, 2);
}

#[tokio::test]
async fn refused_posts_become_a_backfill_when_there_is_room() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let manager = at
        .fixture
        .applied_manager(conn, &instructions("kettle"), &[])
        .await;
    run(conn, "DELETE FROM backfills").await;
    let mut late = posts(0, 8);
    late[6].time = late[6].time.minus(Duration::from_secs(60));
    assert_eq!(offer(conn, manager, &late, Origin::Poll).await, (5, 3));
    let paused = Health::of(vec![HealthReason::QuotaExceeded]);
    assert_eq!(health(conn, manager).await, paused);
    assert_eq!(catch_up(conn).await, 0, "the day is used up");

    // A crash between the two statements repeats the first.
    let note = "UPDATE scan_clocks SET refused_since = (SELECT min(catch_up_since) FROM backfills)";
    run(conn, NEXT_DAY).await;
    assert_eq!(catch_up(conn).await, 1);
    run(conn, note).await;
    assert_eq!(catch_up(conn).await, 1);
    assert_eq!(catch_up(conn).await, 0);
    assert_eq!(
        health(conn, manager).await,
        paused,
        "until the posts are there"
    );
    let since = late[6].time.to_chrono().timestamp_micros();
    let asked = format!(
        "SELECT count(*) AS number FROM backfills WHERE state = 'WAITING' AND notify \
         AND since = catch_up_since AND (extract(epoch FROM since) * 1000000)::bigint = {since}"
    );
    assert_eq!(number(conn, &asked).await, 1);

    // A smaller request by the customer does not shorten it.
    let reach = |_: &FeedName| domain::Reach::Nothing;
    let now = Timestamp::now();
    backfills::request(conn, manager, now, true, Duration::ZERO, reach)
        .await
        .unwrap();
    assert_eq!(number(conn, &asked).await, 1);

    // The Manager's own limit admitted them before.
    run(conn, "UPDATE managers SET max_scans_per_day = 1").await;
    let catch_up = HashMap::from([(manager, late[6].time)]);
    let origin = Origin::Past {
        silently: false,
        catch_up: &catch_up,
    };
    assert_eq!(offer(conn, manager, &late, origin).await, (3, 0));
    run(conn, "UPDATE backfills SET state = 'DONE'").await;
    assert_eq!(health(conn, manager).await, Health::of(vec![]));
}

#[tokio::test]
async fn a_failed_catch_up_is_shown_and_starts_again_after_a_day() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let manager = at
        .fixture
        .applied_manager(conn, &instructions("kettle"), &[])
        .await;
    run(conn, "DELETE FROM backfills").await;
    assert_eq!(
        offer(conn, manager, &posts(0, 8), Origin::Poll).await,
        (5, 3)
    );
    run(conn, NEXT_DAY).await;
    assert_eq!(catch_up(conn).await, 1);
    let waiting = backfills::Waiting {
        feed: feed(),
        notify: true,
        account: at.fixture.account,
    };
    assert!(
        backfills::set_aside(conn, &waiting, manager, "refused", 1)
            .await
            .unwrap()
    );
    let failed = Health::of(vec![HealthReason::BackfillFailed]);
    assert_eq!(health(conn, manager).await, failed);
    assert_eq!(catch_up(conn).await, 0);
    assert_eq!(backfills::retry_failed(conn).await.unwrap(), 0, "it rests");
    run(
        conn,
        "UPDATE backfills SET update_time = now() - interval '1 day'",
    )
    .await;
    assert_eq!(backfills::retry_failed(conn).await.unwrap(), 1);
    let paused = Health::of(vec![HealthReason::QuotaExceeded]);
    assert_eq!(health(conn, manager).await, paused);

    // A request by the customer keeps what the failed one owes.
    run(conn, "UPDATE backfills SET state = 'FAILED'").await;
    let reach = |_: &FeedName| domain::Reach::Nothing;
    backfills::request(conn, manager, Timestamp::now(), true, Duration::ZERO, reach)
        .await
        .unwrap();
    assert_eq!(health(conn, manager).await, paused);

    // After a week, the refused posts are gone.
    run(
        conn,
        "UPDATE backfills SET state = 'FAILED', update_time = now() - interval '1 day', \
             create_time = now() - interval '7 days'",
    )
    .await;
    assert_eq!(backfills::retry_failed(conn).await.unwrap(), 0);
}

#[tokio::test]
async fn a_refused_backdated_post_requests_a_backfill_of_a_week() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let manager = at
        .fixture
        .applied_manager(conn, &instructions("kettle"), &[])
        .await;
    run(conn, "DELETE FROM backfills").await;
    let mut posts = posts(0, 6);
    posts[5].time = Timestamp::now().minus(Duration::from_hours(9 * 365 * 24));
    assert_eq!(offer(conn, manager, &posts, Origin::Poll).await, (5, 1));
    run(conn, NEXT_DAY).await;
    assert_eq!(catch_up(conn).await, 1);
    let bounded = "SELECT count(*) AS number FROM backfills \
         WHERE since = catch_up_since AND since > now() - interval '169 hours'";
    assert_eq!(number(conn, bounded).await, 1);
}

#[tokio::test]
async fn a_backfill_without_room_is_not_due_and_a_raised_quota_makes_it_due() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let manager = at
        .fixture
        .applied_manager(conn, &instructions("kettle"), &[])
        .await;
    let next = async |conn: &mut AsyncPgConnection| {
        let mut look = Look::of(Uuid::new_v4());
        let claim = look.claim();
        let waiting = backfills::waiting(conn, &["hackernews"], &claim, DEFAULTS.scans_per_day);
        !waiting.await.unwrap().is_empty()
    };
    assert!(next(conn).await);
    let nothing = HashMap::new();
    let origin = Origin::Past {
        silently: true,
        catch_up: &nothing,
    };
    assert_eq!(offer(conn, manager, &posts(0, 7), origin).await, (5, 2));
    assert!(!next(conn).await);
    let noted = "SELECT count(*) AS number FROM scan_clocks WHERE refused_since IS NOT NULL";
    assert_eq!(
        number(conn, noted).await,
        0,
        "silent Scans must not be delivered"
    );
    let change = Change {
        scans_per_day: Some(Some(6)),
        ..Change::default()
    };
    quotas::set(conn, "acme", &change).await.unwrap();
    assert!(next(conn).await);
    assert_eq!(offer(conn, manager, &posts(0, 7), origin).await, (1, 1));
    assert!(!next(conn).await);
    run(conn, NEXT_DAY).await;
    assert!(next(conn).await);
}

#[tokio::test]
async fn backfills_of_accounts_take_turns() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let mut instructions = instructions("kettle");
    instructions.feeds = (0..100)
        .map(|n| format!("lemmy:c{n}@a.example").parse().unwrap())
        .collect();
    for _ in 0..2 {
        at.fixture.applied_manager(conn, &instructions, &[]).await;
    }
    let other = at.fixture.beside(conn, "globex").await;
    // A feed whose Manager of the hostile account has waited longer, and another feed.
    instructions.feeds = feeds(&["lemmy:c0@a.example", "lemmy:own@a.example"]);
    let theirs = other.applied_manager(conn, &instructions, &[]).await;
    let mut turns = Turns::default();
    let mut served = Vec::new();
    for _ in 0..6 {
        // One place, which is free again each time.
        let mut room = Room::new(1, 0, 1);
        let mut claim = Claim {
            replica: Uuid::new_v4(),
            take_over: true,
            known: &[],
            room: &mut room,
            turns: &mut turns,
        };
        let waiting = backfills::waiting(conn, &["lemmy"], &claim, u32::MAX).await;
        let leased = table::lease(conn, backfills::KIND, waiting.unwrap(), &mut claim).await;
        let leased = leased.unwrap().items;
        assert_eq!(leased.len(), 1);
        let next = &leased[0].item;
        let asked = backfills::waiting_for(conn, next, 1, u32::MAX).await;
        let (asked, _) = asked.unwrap();
        let own = next.account == other.account;
        assert_eq!(asked[0].manager == theirs, own, "only its own Managers");
        served.push(own);
        let done = format!(
            "UPDATE backfills SET state = 'DONE' WHERE feed = '{}' AND manager_id = '{}'",
            next.feed,
            asked[0].manager.manager.to_uuid()
        );
        assert_eq!(run(conn, done).await, 1);
        run(conn, "DELETE FROM leases").await;
    }
    assert_eq!(served, [false, true, false, true, false, false]);
}

/// Leases one feed with waiting backfills, and returns its key.
async fn lease_backfill(conn: &mut AsyncPgConnection, replica: Uuid, known: &[String]) -> String {
    let mut claim = Claim {
        replica,
        take_over: true,
        known,
        room: &mut Room::new(1, 0, 1),
        turns: &mut Turns::default(),
    };
    let waiting = backfills::waiting(conn, &["lemmy"], &claim, u32::MAX).await;
    let leased = table::lease(conn, backfills::KIND, waiting.unwrap(), &mut claim).await;
    leased.unwrap().items.remove(0).key
}

#[tokio::test]
async fn backfills_in_hand_leased_or_set_aside_hide_no_others() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let mut instructions = instructions("kettle");
    instructions.feeds = feeds(&["lemmy:a", "lemmy:b", "lemmy:c", "lemmy:d"]);
    at.fixture.applied_manager(conn, &instructions, &[]).await;
    let (replica, other) = (Uuid::new_v4(), Uuid::new_v4());
    for one in [replica, other] {
        replicas::beat(conn, one, "scanner").await.unwrap();
    }
    let in_hand = lease_backfill(conn, replica, &[]).await;
    let known = [in_hand.clone()];
    let leased = lease_backfill(conn, other, &[]).await;
    let aside = lease_backfill(conn, replica, &known).await;
    let wait = Duration::from_secs(60);
    table::set_aside(conn, backfills::KIND, &aside, replica, "reason", wait)
        .await
        .unwrap();
    let last = lease_backfill(conn, replica, &known).await;
    let all = BTreeSet::from([in_hand, leased, aside, last]);
    assert_eq!(all.len(), 4);
}
