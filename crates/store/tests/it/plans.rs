use std::collections::HashSet;

use domain::{Focus, Instructions, ManagerName, PlanVersion, Timestamp, instructions::Sells};
use store::{
    AsyncConnection, AsyncPgConnection, managers,
    plans::{self, Changes, PlanRecord},
};
use test_support::instructions;

use crate::support::{Start, number, run, start, watch};

/// Returns the version that the change with this number created.
async fn logged(at: &Start, number: i64) -> PlanVersion {
    let change = format!("plan_changes WHERE version = {number}");
    let nonces = at.database.texts("nonce", &change).await;
    let nonce = nonces[0].parse().expect("each change has one");
    PlanVersion { number, nonce }
}

async fn watched(conn: &mut AsyncPgConnection, feed: &str) -> bool {
    let sql = format!("SELECT count(*) AS number FROM feeds WHERE name = '{feed}' AND watched");
    number(conn, &sql).await == 1
}

fn since(changes: Changes) -> (PlanVersion, Vec<PlanRecord>) {
    match changes {
        Changes::Since { version, plans, .. } => (version, plans),
        Changes::TooFarBehind => panic!("too far behind"),
    }
}

async fn disable(conn: &mut AsyncPgConnection, manager: ManagerName) {
    let sql = format!(
        "UPDATE managers SET enable = false WHERE id = '{}'",
        manager.manager.to_uuid()
    );
    run(conn, sql).await;
}

#[tokio::test]
async fn a_reader_learns_each_changed_manager_once() {
    let mut at = start().await;
    let first = at
        .fixture
        .applied_manager(&mut at.conn, &instructions("a"), &[])
        .await;
    let second = at
        .fixture
        .applied_manager(&mut at.conn, &instructions("b"), &[])
        .await;
    let waiting = at
        .fixture
        .manager(&mut at.conn, &instructions("c"), &[])
        .await;
    assert_eq!(plans::version(&mut at.conn).await.unwrap().number, 2);
    assert_eq!(watch(&mut at.conn, first, &[]).await, 3);
    assert_eq!(watch(&mut at.conn, waiting, &[]).await, 4);
    disable(&mut at.conn, second).await;

    let changes = plans::changes_since(&mut at.conn, PlanVersion::default()).await;
    let (version, plans) = since(changes.unwrap());
    assert_eq!(version, logged(&at, 4).await);
    let expected: [(ManagerName, Option<Instructions>); 3] = [
        (first, Some(instructions("a"))),
        (second, None),
        (waiting, None),
    ];
    let found: Vec<_> = plans
        .into_iter()
        .map(|plan| (plan.manager, plan.instructions))
        .collect();
    assert_eq!(found, expected);

    let third = logged(&at, 3).await;
    let (last, plans) = since(plans::changes_since(&mut at.conn, third).await.unwrap());
    assert_eq!((last, plans.len(), plans[0].manager), (version, 1, waiting));
    assert_eq!(
        since(plans::changes_since(&mut at.conn, last).await.unwrap()),
        (last, vec![])
    );

    run(
        &mut at.conn,
        format!(
            "DELETE FROM managers WHERE id = '{}'",
            first.manager.to_uuid()
        ),
    )
    .await;
    let second = logged(&at, 2).await;
    let (_, plans) = since(plans::changes_since(&mut at.conn, second).await.unwrap());
    assert_eq!(
        plans[0].instructions, None,
        "a deleted Manager matches nothing"
    );
}

#[tokio::test]
async fn a_reader_whose_version_is_not_in_the_log_loads_everything() {
    let mut at = start().await;
    let manager = at
        .fixture
        .applied_manager(&mut at.conn, &instructions("a"), &[])
        .await;
    for _ in 0..4 {
        watch(&mut at.conn, manager, &[]).await;
    }
    let mut versions = vec![PlanVersion::default()];
    for number in 1..=5 {
        versions.push(logged(&at, number).await);
    }
    versions.push(PlanVersion {
        number: 6,
        ..versions[5]
    });
    run(&mut at.conn, "DELETE FROM plan_changes WHERE version <= 2").await;
    let behind = [true, true, true, false, false, false, true];
    for (after, behind) in versions.iter().zip(behind) {
        let changes = plans::changes_since(&mut at.conn, *after).await.unwrap();
        assert_eq!(changes == Changes::TooFarBehind, behind, "after {after:?}");
    }
    run(&mut at.conn, "DELETE FROM plan_changes").await;
    let changes = plans::changes_since(&mut at.conn, versions[4]).await;
    assert_eq!(changes.unwrap(), Changes::TooFarBehind);
}

#[tokio::test]
async fn a_reader_whose_version_was_given_to_another_change_loads_everything() {
    let mut at = start().await;
    let instructions = instructions("a");
    for _ in 0..3 {
        at.fixture
            .applied_manager(&mut at.conn, &instructions, &[])
            .await;
    }
    let second = logged(&at, 2).await;
    let lost = plans::version(&mut at.conn).await.unwrap();
    assert_eq!(lost.number, 3);

    // After a failover to a copy of the database that lacks the last change, other changes follow.
    run(&mut at.conn, "DELETE FROM plan_changes WHERE version = 3").await;
    run(&mut at.conn, "UPDATE plan_version SET version = 2").await;
    for (count, number) in [(0, 2), (1, 3), (2, 4)] {
        let changes = plans::changes_since(&mut at.conn, lost).await.unwrap();
        assert_eq!(changes, Changes::TooFarBehind, "{count} new changes");
        let (version, plans) = since(plans::changes_since(&mut at.conn, second).await.unwrap());
        assert_eq!((version.number, plans.len()), (number, count));
        at.fixture
            .applied_manager(&mut at.conn, &instructions, &[])
            .await;
    }
}

#[tokio::test]
async fn changes_without_a_nonce_are_read() {
    let mut at = start().await;
    let instructions = instructions("a");
    for _ in 0..2 {
        at.fixture
            .applied_manager(&mut at.conn, &instructions, &[])
            .await;
    }
    run(&mut at.conn, "UPDATE plan_changes SET nonce = NULL").await;
    let version = plans::version(&mut at.conn).await.unwrap();
    assert_eq!((version.number, version.nonce), (2, uuid::Uuid::nil()));
    let changes = plans::changes_since(&mut at.conn, version).await.unwrap();
    assert_eq!(since(changes), (version, vec![]));
    at.fixture
        .applied_manager(&mut at.conn, &instructions, &[])
        .await;
    let (now, plans) = since(plans::changes_since(&mut at.conn, version).await.unwrap());
    assert_eq!((now.number, plans.len()), (3, 1));
}

#[tokio::test]
async fn many_changes_are_read_a_few_at_a_time() {
    let mut at = start().await;
    let manager = at
        .fixture
        .manager(&mut at.conn, &instructions("a"), &[])
        .await;
    for _ in 0..120 {
        watch(&mut at.conn, manager, &[]).await;
    }
    let mut seen = PlanVersion::default();
    let mut read = Vec::new();
    loop {
        let changes = plans::changes_since(&mut at.conn, seen).await.unwrap();
        let Changes::Since { version, more, .. } = changes else {
            panic!("too far behind");
        };
        seen = version;
        read.push(version.number);
        if !more {
            break;
        }
    }
    // The change that created the version before is read again.
    assert_eq!(read, [50, 99, 120]);
}

#[tokio::test]
async fn only_changes_of_managers_and_their_mutes_concern_them() {
    let mut at = start().await;
    let globex = at.fixture.beside(&mut at.conn, "globex").await;
    let of_a = instructions("a");
    let own = at.fixture.applied_manager(&mut at.conn, &of_a, &[]).await;
    let beside = at.fixture.applied_manager(&mut at.conn, &of_a, &[]).await;
    let other = globex.applied_manager(&mut at.conn, &of_a, &[]).await;
    let managers = HashSet::from([own]);
    let conn = &mut at.conn;
    for (manager, namespace, expected) in [
        (Some(other), None, true),
        (None, Some(globex.namespace), true),
        (Some(beside), None, true),
        (Some(own), None, false),
        (None, Some(at.fixture.namespace), false),
    ] {
        let since = plans::version(conn).await.unwrap();
        if let Some(manager) = manager {
            watch(conn, manager, &["hackernews:newest"]).await;
        }
        if let Some(namespace) = namespace {
            plans::record_namespace(conn, namespace, Timestamp::now())
                .await
                .unwrap();
        }
        let unchanged = plans::are_unchanged(conn, since, &managers).await;
        assert_eq!(unchanged.unwrap(), expected, "{manager:?} {namespace:?}");
        let now = plans::version(conn).await.unwrap();
        assert!(plans::are_unchanged(conn, now, &managers).await.unwrap());
    }
    // A reader cannot know what a restored database changed.
    let since = plans::version(conn).await.unwrap();
    run(conn, "UPDATE plan_changes SET nonce = gen_random_uuid()").await;
    assert!(!plans::are_unchanged(conn, since, &managers).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_become_visible_in_order() {
    let mut at = start().await;
    let manager = at
        .fixture
        .manager(&mut at.conn, &instructions("a"), &[])
        .await;
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let pool = at.database.pool();
            tokio::spawn(async move {
                let mut conn = pool.get().await.unwrap();
                for _ in 0..50 {
                    conn.transaction(async |conn| {
                        watch(conn, manager, &["hackernews:newest"]).await;
                        Ok::<_, store::Error>(())
                    })
                    .await
                    .unwrap();
                }
            })
        })
        .collect();
    let mut seen = PlanVersion::default();
    while seen.number < 200 {
        // There is never a gap below the version: `since` refuses one.
        let (version, _) = since(plans::changes_since(&mut at.conn, seen).await.unwrap());
        assert!(version.number >= seen.number);
        seen = version;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(plans::version(&mut at.conn).await.unwrap().number, 200);
}

#[tokio::test]
async fn every_plan_is_loaded_in_pages() {
    let mut at = start().await;
    let mut expected = Vec::new();
    for at_index in 0..7 {
        let name = at
            .fixture
            .applied_manager(&mut at.conn, &instructions("a"), &[])
            .await;
        if at_index == 3 {
            disable(&mut at.conn, name).await;
        }
        expected.push((name, at_index != 3));
    }
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = plans::load_page(&mut at.conn, after, 3, i64::MAX);
        let page = page.await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.manager);
        found.extend(
            page.into_iter()
                .map(|plan| (plan.manager, plan.instructions.is_some())),
        );
    }
    assert_eq!(found, expected);
}

#[tokio::test]
async fn page_of_plans_ends_by_bytes() {
    let mut at = start().await;
    let mut large = instructions("a");
    large.exclude = (0..100).map(|n| format!("word number {n}")).collect();
    for instructions in [
        &instructions("a"),
        &instructions("b"),
        &large,
        &large,
        &large,
    ] {
        at.fixture
            .applied_manager(&mut at.conn, instructions, &[])
            .await;
    }
    // Like a Manager that was written before its bytes were counted.
    let fourth = "SELECT id FROM managers ORDER BY id LIMIT 1 OFFSET 3";
    let sql = format!("UPDATE managers SET content_bytes = NULL WHERE id = ({fourth})");
    assert_eq!(run(&mut at.conn, sql).await, 1);
    let mut sizes = Vec::new();
    let mut after = None;
    loop {
        let page = plans::load_page(&mut at.conn, after, 1_000, 1_500);
        let page = page.await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.manager);
        sizes.push(page.len());
    }
    // The one that exceeds the bytes ends its page, and is never left out.
    assert_eq!(sizes, [3, 1, 1]);
}

#[tokio::test]
async fn a_feed_is_watched_while_some_manager_watches_it() {
    let mut at = start().await;
    let one = at
        .fixture
        .manager(&mut at.conn, &instructions("a"), &[])
        .await;
    let two = at
        .fixture
        .manager(&mut at.conn, &instructions("b"), &[])
        .await;
    let (newest, ask) = ("hackernews:newest", "hackernews:ask");
    // Who watches what from then on, and what anyone watches then.
    let steps: [(ManagerName, &[&str], [bool; 2]); 8] = [
        (one, &[newest, newest], [true, false]),
        (two, &[newest, ask], [true, true]),
        (one, &[], [true, true]),
        (two, &[ask], [false, true]),
        (two, &[], [false, false]),
        (one, &[ask], [false, true]),
        (one, &[newest, ask], [true, true]),
        (one, &[newest], [true, false]),
    ];
    for (at_step, (manager, feeds, expected)) in steps.into_iter().enumerate() {
        watch(&mut at.conn, manager, feeds).await;
        let found = [
            watched(&mut at.conn, newest).await,
            watched(&mut at.conn, ask).await,
        ];
        assert_eq!(found, expected, "after step {at_step}");
    }
}

#[tokio::test]
async fn a_feed_that_is_watched_again_is_due_at_once() {
    let mut at = start().await;
    let manager = at
        .fixture
        .manager(&mut at.conn, &instructions("a"), &[])
        .await;
    let newest = "hackernews:newest";
    let due = "SELECT count(*) AS number FROM feeds WHERE watched AND next_poll_time <= now()";
    watch(&mut at.conn, manager, &[newest]).await;
    run(
        &mut at.conn,
        "UPDATE feeds SET next_poll_time = now() + interval '1 hour'",
    )
    .await;
    watch(&mut at.conn, manager, &[newest]).await;
    assert_eq!(
        number(&mut at.conn, due).await,
        0,
        "a poll is not hurried by another change"
    );
    watch(&mut at.conn, manager, &[]).await;
    watch(&mut at.conn, manager, &[newest]).await;
    assert_eq!(number(&mut at.conn, due).await, 1);
}

#[tokio::test]
async fn a_feed_that_others_watch_is_not_locked_by_a_manager_that_leaves_it() {
    let mut at = start().await;
    let mut names = Vec::new();
    for term in ["a", "b", "c"] {
        let instructions = instructions(term);
        let one = at.fixture.manager(&mut at.conn, &instructions, &[]).await;
        watch(&mut at.conn, one, &["hackernews:newest"]).await;
        names.push(one);
    }
    // Its poll is being stored.
    let poll = at
        .database
        .begin(&["SELECT FROM feeds WHERE name = 'hackernews:newest' FOR UPDATE"])
        .await;
    watch(&mut at.conn, names[0], &[]).await;
    managers::delete(&mut at.conn, names[1], Timestamp::now())
        .await
        .unwrap();
    assert!(watched(&mut at.conn, "hackernews:newest").await);
    drop(poll);
    watch(&mut at.conn, names[2], &[]).await;
    assert!(!watched(&mut at.conn, "hackernews:newest").await);
}

#[tokio::test]
async fn sellers_are_read_from_their_fields() {
    let mut at = start().await;
    let sells = Sells {
        summary: "Kettles for everyone.".to_owned(),
        offers: vec!["kettle".to_owned()],
    };
    let selling = Instructions {
        focus: Some(Focus::Sales),
        sells: sells.or_none(),
        ..instructions("kettle")
    };
    let conn = &mut at.conn;
    let first = at.fixture.applied_manager(conn, &selling, &[]).await;
    let plain = instructions("kettle");
    let second = at.fixture.applied_manager(conn, &plain, &[]).await;
    let third = at.fixture.applied_manager(conn, &plain, &[]).await;
    let strange = format!(
        "UPDATE managers SET instructions = instructions || '{{\"sells\": 7}}' WHERE id = '{}'",
        third.manager.to_uuid()
    );
    run(conn, &strange).await;

    let found = plans::sellers(conn, &[first, second, third]).await.unwrap();
    let seller = &found[&first];
    assert_eq!(
        (seller.account, seller.focus, &seller.sells),
        (at.fixture.account, Some(Focus::Sales), &selling.sells)
    );
    assert_eq!(seller.names, selling.names);
    assert_eq!((found[&second].focus, &found[&second].sells), (None, &None));
    assert!(!found.contains_key(&third), "it cannot be read");
}
