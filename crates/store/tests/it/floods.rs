//! The limit of a day's Scans, and the health that reports it.

use domain::{
    ManagerName, Post, ScanName, Timestamp,
    manager::health::{Health, HealthReason},
    screen::{Mute, MuteType},
};
use store::{
    AsyncConnection, AsyncPgConnection, managers,
    namespaces::{self},
    plans::{self, Changes},
    scans::{self, NewScan},
    stats,
};
use test_support::{instructions, post};

use crate::support::{feed, matched, number, record_past, run, start};

async fn bound(conn: &mut AsyncPgConnection, manager: ManagerName, max: u32) {
    let id = manager.manager.to_uuid();
    let sql = format!("UPDATE managers SET max_scans_per_day = {max} WHERE id = '{id}'");
    run(conn, sql).await;
}

fn posts(from: usize, count: usize) -> Vec<Post> {
    let ids = (from..from + count).map(|n| format!("forum:{n}"));
    ids.map(|id| post(&id, "A kettle")).collect()
}

/// Matches with falling scores, as one poll finds them.
async fn offer(
    conn: &mut AsyncPgConnection,
    manager: ManagerName,
    posts: &[Post],
) -> Vec<ScanName> {
    let matches: Vec<NewScan<'_>> = posts
        .iter()
        .enumerate()
        .map(|(n, post)| NewScan {
            manager,
            post,
            matched: matched(1.0 - n as f64 / 1_000.0),
        })
        .collect();
    conn.transaction(async |conn| scans::record(conn, &feed(), &matches, Timestamp::now()).await)
        .await
        .unwrap()
}

const SUPPRESSED: &str = "SELECT coalesce(sum((counts ->> 'suppressed')::bigint), 0)::bigint AS number FROM stats_deltas";

async fn health(conn: &mut AsyncPgConnection, manager: ManagerName) -> Health {
    let read = managers::get(conn, manager).await.unwrap().unwrap();
    read.health.unwrap()
}

#[tokio::test]
async fn scans_over_the_daily_bound_are_suppressed_counted_and_shown() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let kettle = instructions("kettle");
    let manager = at.fixture.applied_manager(conn, &kettle, &[]).await;
    let other = at.fixture.applied_manager(conn, &kettle, &[]).await;
    bound(conn, manager, 10).await;
    assert_eq!(health(conn, manager).await, Health::of(vec![]));

    let flood = posts(0, 100);
    let made = offer(conn, manager, &flood).await;
    // Scores only fall, so the threshold admits nothing beyond half of the day or of the limit.
    assert!((5..=10).contains(&made.len()), "{}", made.len());
    let held = 100 - i64::try_from(made.len()).unwrap();
    assert_eq!(number(conn, SUPPRESSED).await, held);
    let flooded = Health::of(vec![HealthReason::Flooded]);
    assert_eq!(health(conn, manager).await, flooded);

    // The same posts again, and twice in one poll, were already decided.
    let twice: Vec<Post> = flood.iter().chain(&flood).cloned().collect();
    assert_eq!(offer(conn, manager, &twice).await, []);
    assert_eq!(number(conn, SUPPRESSED).await, held);
    assert_eq!(offer(conn, other, &flood).await.len(), 100);
    assert_eq!(health(conn, other).await, Health::of(vec![]));

    // A higher limit or another day applies at once.
    bound(conn, manager, 1_000).await;
    assert_eq!(offer(conn, manager, &posts(200, 50)).await.len(), 50);
    bound(conn, manager, 10).await;
    assert_eq!(offer(conn, manager, &posts(300, 5)).await.len(), 0);
    run(conn, "UPDATE scan_clocks SET quota_day = quota_day - 1").await;
    assert_eq!(health(conn, manager).await, Health::of(vec![]));
    assert_eq!(offer(conn, manager, &posts(400, 5)).await.len(), 5);
    while stats::fold(conn, 0, 1_000).await.unwrap() != Some(0) {}
    let counted = "SELECT sum((counts ->> 'suppressed')::bigint)::bigint AS number FROM stats \
                   WHERE interval_seconds = 86400 AND subject_id <> namespace_id";
    assert_eq!(number(conn, counted).await, held + 5);
}

#[tokio::test]
async fn posts_twice_in_a_poll_spend_one_scan() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let manager = at.fixture.manager(conn, &instructions("kettle"), &[]).await;
    bound(conn, manager, 8).await;
    let once = posts(0, 4);
    let twice: Vec<Post> = once.iter().chain(&once).cloned().collect();
    assert_eq!(offer(conn, manager, &twice).await.len(), 4);
    let made = "SELECT quota_made::bigint AS number FROM scan_clocks";
    assert_eq!(number(conn, made).await, 4);
}

#[tokio::test]
async fn a_rolled_back_transaction_spends_no_scans() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let manager = at.fixture.manager(conn, &instructions("kettle"), &[]).await;
    bound(conn, manager, 4).await;
    let posts = posts(0, 20);
    let undone = conn
        .transaction(async |conn| {
            offer(conn, manager, &posts).await;
            Err::<(), _>(store::QueryError::RollbackTransaction)
        })
        .await;
    assert!(undone.is_err());
    let spent = "SELECT (quota_made + quota_suppressed)::bigint AS number FROM scan_clocks";
    assert_eq!(number(conn, spent).await, 0);
    assert!(!offer(conn, manager, &posts).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_share_one_daily_bound() {
    let mut at = start().await;
    let manager = at
        .fixture
        .manager(&mut at.conn, &instructions("kettle"), &[])
        .await;
    bound(&mut at.conn, manager, 30).await;
    let replicas = (0..4).map(async |replica| {
        let mut conn = at.database.connect().await;
        let mut made = 0;
        for poll in 0..10 {
            let posts = posts(replica * 1_000 + poll * 10, 10);
            made += offer(&mut conn, manager, &posts).await.len();
        }
        made
    });
    let made: usize = futures(replicas).await.into_iter().sum();
    assert!((15..=30).contains(&made), "{made}");
    let total = 400 - i64::try_from(made).unwrap();
    assert_eq!(number(&mut at.conn, SUPPRESSED).await, total);
    let quota = "SELECT (quota_made * 1000 + quota_suppressed)::bigint AS number FROM scan_clocks";
    let expected = i64::try_from(made).unwrap() * 1_000 + total;
    assert_eq!(number(&mut at.conn, quota).await, expected);
}

async fn futures<F: Future>(all: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut all: Vec<_> = all.map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = all.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, done) in all.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(output) = future.as_mut().poll(context)
            {
                *done = Some(output);
            }
        }
        if done.iter().all(Option::is_some) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[tokio::test]
async fn health_names_the_problem() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let kettle = instructions("kettle");
    let manager = at.fixture.applied_manager(conn, &kettle, &[]).await;
    let set = async |conn: &mut AsyncPgConnection, sql: &str| {
        run(conn, sql).await;
    };
    let has = async |conn: &mut AsyncPgConnection, reasons: &[HealthReason], what: &str| {
        assert_eq!(
            health(conn, manager).await,
            Health::of(reasons.to_vec()),
            "{what}"
        );
    };
    set(conn, "UPDATE feeds SET failure_count = 2").await;
    has(conn, &[], "it may be a slip").await;
    set(conn, "UPDATE feeds SET failure_count = 3").await;
    has(conn, &[HealthReason::FeedsFailing], "no feed is read").await;
    set(conn, "UPDATE feeds SET failure_count = 0").await;

    set(
        conn,
        "UPDATE managers SET apply_time = now() - interval '3 days'",
    )
    .await;
    has(conn, &[HealthReason::NoPosts], "nothing is posted").await;
    set(
        conn,
        "INSERT INTO feed_stats VALUES ('hackernews:newest', 86400, date_trunc('day', now(), 'UTC'), 1)",
    )
    .await;
    has(conn, &[], "something is posted").await;

    set(conn, "UPDATE backfills SET state = 'FAILED'").await;
    has(conn, &[HealthReason::BackfillFailed], "it may miss posts").await;
    let later = "INSERT INTO backfills (namespace_id, manager_id, feed, notify, state) \
                 SELECT namespace_id, manager_id, feed, false, 'DONE' FROM backfills";
    set(conn, later).await;
    has(conn, &[], "a later backfill found them").await;

    let made = offer(conn, manager, &posts(0, 6)).await;
    assert_eq!(made.len(), 6);
    let judge = |count: usize| {
        format!(
            "UPDATE scans SET value = false, update_time = create_time + interval '1 second' WHERE id IN \
             (SELECT id FROM scans ORDER BY id LIMIT {count})"
        )
    };
    set(conn, &judge(4)).await;
    has(conn, &[], "few were judged").await;
    set(conn, &judge(5)).await;
    has(conn, &[HealthReason::FeedbackBad], "most are refused").await;
    assert_eq!(offer(conn, manager, &posts(6, 50)).await.len(), 50);
    has(conn, &[], "only the newest fifty count").await;
    set(conn, "UPDATE scans SET value = true").await;

    set(conn, "UPDATE managers SET state = 'APPLY_FAILED', apply_error_code = 'no_reachable_url', apply_error_message = 'x'").await;
    has(conn, &[HealthReason::ApplyFailed], "it failed").await;
    set(conn, "UPDATE managers SET enable = false").await;
    set(conn, "UPDATE feeds SET failure_count = 9").await;
    has(conn, &[HealthReason::ApplyFailed], "it rests").await;
}

#[tokio::test]
async fn unreadable_instructions_of_a_newer_release_hide_no_other_manager() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let manager = at
        .fixture
        .applied_manager(conn, &instructions("kettle"), &[])
        .await;
    run(
        conn,
        r#"UPDATE managers SET instructions = '{"feeds": [], "mood": "x"}'"#,
    )
    .await;
    let read = managers::get(conn, manager).await.unwrap().unwrap();
    assert_eq!(read.instructions, None);
    let expected = Health::of(vec![HealthReason::InstructionsUnreadable]);
    assert_eq!(read.health, Some(expected));
    let page = plans::load_page(conn, None, 10, i64::MAX).await.unwrap();
    assert!(page[0].unreadable && page[0].instructions.is_none());
    // While it is disabled, it misses nothing.
    run(conn, "UPDATE managers SET enable = false").await;
    let page = plans::load_page(conn, None, 10, i64::MAX).await.unwrap();
    assert!(!page[0].unreadable);
}

#[tokio::test]
async fn readers_of_plans_learn_what_a_namespace_mutes() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let id = at.fixture.namespace;
    at.fixture.manager(conn, &instructions("kettle"), &[]).await;
    let mute = Mute {
        mute_type: MuteType::Author,
        value: "pat".to_owned(),
        expire_time: None,
    };
    for mutes in [vec![mute], vec![]] {
        let before = plans::version(conn).await.unwrap();
        let change = domain::namespace::NamespaceChange {
            mutes: Some(mutes.clone()),
            ..Default::default()
        };
        for _ in 0..2 {
            // The second time changes nothing.
            let current = namespaces::lock(conn, id).await.unwrap().unwrap();
            let updated = namespaces::update(
                conn,
                current,
                &change,
                &test_support::QUOTAS,
                Timestamp::now(),
            )
            .await;
            assert_eq!(updated.unwrap().mutes, mutes);
        }
        let Changes::Since {
            version,
            plans,
            namespaces,
            more: false,
        } = plans::changes_since(conn, before).await.unwrap()
        else {
            panic!("too far behind");
        };
        assert_eq!(
            (version.number, plans.len(), namespaces.len()),
            (before.number + 1, 0, 1)
        );
        assert_eq!(
            (namespaces[0].namespace, &namespaces[0].mutes),
            (id, &mutes)
        );
        assert!(namespaces[0].has_changed);
        let all = plans::load_mutes(conn, None, 10).await.unwrap();
        assert_eq!(all.len(), mutes.len());
    }
}

#[tokio::test]
async fn mutes_are_read_by_page_and_only_where_a_manager_is_enabled() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let mut names = Vec::new();
    for account in ["a", "b", "c"] {
        let fixture = at.fixture.beside(conn, account).await;
        let kettle = instructions("kettle");
        names.push(fixture.applied_manager(conn, &kettle, &[]).await);
    }
    // This one has no Manager.
    at.fixture.beside(conn, "d").await;
    let mutes = r#"[{"type": "AUTHOR", "value": "pat"}]"#;
    run(conn, format!("UPDATE namespaces SET mutes = '{mutes}'")).await;
    let mut ids: Vec<_> = names.iter().map(|name| name.namespace).collect();
    ids.sort_unstable_by_key(|id| id.to_uuid());
    let pages = async |conn: &mut AsyncPgConnection| {
        let (mut read, mut after) = (Vec::new(), None);
        loop {
            let page = plans::load_mutes(conn, after, 2).await.unwrap();
            assert!(page.len() <= 2);
            let Some(last) = page.last() else { break read };
            after = Some(last.namespace);
            read.extend(page.into_iter().map(|one| one.namespace));
        }
    };
    assert_eq!(pages(conn).await, ids);

    // Readers of changes learn that a Namespace loses and gets its last enabled Manager.
    for (enable, count) in [(false, 0), (true, 1)] {
        let before = plans::version(conn).await.unwrap();
        let change = domain::manager::ManagerChange {
            enable: Some(enable),
            ..Default::default()
        };
        let current = managers::lock(conn, names[0]).await.unwrap().unwrap();
        let now = Timestamp::now();
        managers::update(conn, current, &change, &test_support::QUOTAS, now)
            .await
            .unwrap();
        let changes = plans::changes_since(conn, before).await.unwrap();
        let Changes::Since { namespaces, .. } = changes else {
            panic!("too far behind");
        };
        assert_eq!(namespaces.len(), 1);
        assert_eq!(namespaces[0].namespace, names[0].namespace);
        assert_eq!(namespaces[0].mutes.len(), count);
        assert!(!namespaces[0].has_changed);
        assert_eq!(pages(conn).await.len(), 2 + count);
    }
}

async fn offer_past(
    conn: &mut AsyncPgConnection,
    manager: ManagerName,
    posts: &[Post],
    silently: bool,
) -> usize {
    let new = |post| NewScan {
        manager,
        post,
        matched: matched(1.0),
    };
    let matches: Vec<NewScan<'_>> = posts.iter().map(new).collect();
    conn.transaction(async |conn| {
        Ok::<_, store::Error>(record_past(conn, &matches, silently).await)
    })
    .await
    .unwrap()
    .len()
}

#[tokio::test]
async fn a_backfill_leaves_half_of_the_daily_bound_and_can_be_repeated() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let manager = at.fixture.manager(conn, &instructions("kettle"), &[]).await;
    bound(conn, manager, 10).await;
    let past = posts(0, 40);
    assert_eq!(offer_past(conn, manager, &past, false).await, 5);
    assert_eq!(number(conn, SUPPRESSED).await, 35);
    let fresh = offer(conn, manager, &posts(100, 20)).await.len();
    assert!((1..=5).contains(&fresh), "{fresh}");
    // Silent Scans do not count as a flood, and posts that did not fit before are not lost.
    assert_eq!(offer_past(conn, manager, &past, true).await, 35);
    assert_eq!(offer_past(conn, manager, &past, true).await, 0);
    let made = "SELECT quota_made::bigint AS number FROM scan_clocks";
    assert_eq!(
        number(conn, made).await,
        5 + i64::try_from(fresh).unwrap(),
        "silent Scans are not of the day"
    );
}
