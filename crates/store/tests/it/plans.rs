use domain::{FeedName, Instructions, ManagerName, Timestamp};
use store::{
    AsyncConnection, AsyncPgConnection,
    plans::{self, Changes, PlanRecord},
};
use test_support::instructions;

use crate::support::{number, run, start};

async fn record(conn: &mut AsyncPgConnection, manager: ManagerName, feeds: &[&str]) -> i64 {
    let feeds: Vec<FeedName> = feeds.iter().map(|name| name.parse().unwrap()).collect();
    plans::record_change(conn, manager, &feeds, Timestamp::now())
        .await
        .unwrap()
}

async fn watched(conn: &mut AsyncPgConnection, feed: &str) -> bool {
    let sql = format!("SELECT count(*) AS number FROM feeds WHERE name = '{feed}' AND watched");
    number(conn, &sql).await == 1
}

fn since(changes: Changes) -> (i64, Vec<PlanRecord>) {
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
    assert_eq!(plans::version(&mut at.conn).await.unwrap(), 2);
    assert_eq!(record(&mut at.conn, first, &[]).await, 3);
    assert_eq!(record(&mut at.conn, waiting, &[]).await, 4);
    disable(&mut at.conn, second).await;

    let (version, plans) = since(plans::changes_since(&mut at.conn, 0).await.unwrap());
    assert_eq!(version, 4);
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

    let (version, plans) = since(plans::changes_since(&mut at.conn, 3).await.unwrap());
    assert_eq!((version, plans.len(), plans[0].manager), (4, 1, waiting));
    assert_eq!(
        since(plans::changes_since(&mut at.conn, 4).await.unwrap()),
        (4, vec![])
    );

    run(
        &mut at.conn,
        format!(
            "DELETE FROM managers WHERE id = '{}'",
            first.manager.to_uuid()
        ),
    )
    .await;
    let (_, plans) = since(plans::changes_since(&mut at.conn, 2).await.unwrap());
    assert_eq!(
        plans[0].instructions, None,
        "a deleted Manager matches nothing"
    );
}

#[tokio::test]
async fn a_reader_whose_place_the_log_does_not_have_loads_everything() {
    let mut at = start().await;
    let manager = at
        .fixture
        .applied_manager(&mut at.conn, &instructions("a"), &[])
        .await;
    for _ in 0..4 {
        record(&mut at.conn, manager, &[]).await;
    }
    run(&mut at.conn, "DELETE FROM plan_changes WHERE version <= 2").await;
    for (after, behind) in [(0, true), (1, true), (2, false), (5, false), (6, true)] {
        let changes = plans::changes_since(&mut at.conn, after).await.unwrap();
        assert_eq!(changes == Changes::TooFarBehind, behind, "after {after}");
    }
    run(&mut at.conn, "DELETE FROM plan_changes").await;
    let changes = plans::changes_since(&mut at.conn, 4).await.unwrap();
    assert_eq!(changes, Changes::TooFarBehind);
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
                        record(conn, manager, &["hackernews:newest"]).await;
                        Ok::<_, store::Error>(())
                    })
                    .await
                    .unwrap();
                }
            })
        })
        .collect();
    let mut seen = 0;
    while seen < 200 {
        // Never a gap behind the version: `since` refuses one.
        let (version, _) = since(plans::changes_since(&mut at.conn, seen).await.unwrap());
        assert!(version >= seen);
        seen = version;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(plans::version(&mut at.conn).await.unwrap(), 200);
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
        let page = plans::load_page(&mut at.conn, after, 3).await.unwrap();
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
    // Who watches what from then on, and what is watched then by anybody.
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
        record(&mut at.conn, manager, feeds).await;
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
    record(&mut at.conn, manager, &[newest]).await;
    run(
        &mut at.conn,
        "UPDATE feeds SET next_poll_time = now() + interval '1 hour'",
    )
    .await;
    record(&mut at.conn, manager, &[newest]).await;
    assert_eq!(
        number(&mut at.conn, due).await,
        0,
        "a poll is not hurried by another change"
    );
    record(&mut at.conn, manager, &[]).await;
    record(&mut at.conn, manager, &[newest]).await;
    assert_eq!(number(&mut at.conn, due).await, 1);
}
