//! Near-duplicates with `duplicates: COLLAPSE`.

use domain::{ManagerName, Post, Scan, ScanName, Timestamp, scan::MAX_PLACES};
use store::{
    AsyncConnection, AsyncPgConnection,
    retention::{Purge, Unpartitioned},
    scans,
};
use test_support::{instructions, post};

use crate::support::{new_scan, record, record_past, run, start};

async fn collapse(conn: &mut AsyncPgConnection, manager: ManagerName) {
    let id = manager.manager.to_uuid();
    run(
        conn,
        format!("UPDATE managers SET duplicates = 'COLLAPSE' WHERE id = '{id}'"),
    )
    .await;
}

fn said(id: &str, text: &str) -> Post {
    let mut said = post(id, "");
    said.title = None;
    said.text = Some(text.to_owned());
    said.url = format!("https://{}.example/", id.replace(':', "-"));
    said
}

async fn read(conn: &mut AsyncPgConnection, name: ScanName) -> Scan {
    scans::get(conn, name).await.unwrap().unwrap()
}

const SAID: &str = "Which espresso machine would you buy for an office of eight people?";

#[tokio::test]
async fn a_near_duplicate_becomes_a_place_of_the_first_scan() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let terms = instructions("espresso");
    let manager = at.fixture.applied_manager(conn, &terms, &[]).await;
    let other = at.fixture.applied_manager(conn, &terms, &[]).await;
    collapse(conn, manager).await;
    let first = record(conn, manager, &[said("a:1", SAID)]).await;
    let again = said(
        "b:1",
        "which espresso machine would you buy, for an office of eight people",
    );
    assert!(
        record(conn, manager, std::slice::from_ref(&again))
            .await
            .is_empty()
    );
    // Another one of the same poll, and the same post again.
    let linked = |id: &str| {
        said(
            id,
            &format!("{id} see https://www.example.com/kettle?utm_source={id}"),
        )
    };
    let made = record(
        conn,
        manager,
        &[linked("c:1"), linked("d:1"), again.clone()],
    )
    .await;
    assert_eq!(made.len(), 1);

    let scan = read(conn, first[0]).await;
    assert_eq!(scan.places.len(), 1);
    assert_eq!(
        (&scan.places[0].url, scan.places[0].time),
        (&again.url, again.time)
    );
    assert_eq!(scan.places[0].subforum, again.subforum);
    assert_eq!(scan.update_time, scan.create_time);
    assert_eq!(
        read(conn, made[0]).await.places[0].url,
        "https://d-1.example/"
    );

    // A Manager with `KEEP` has both.
    let kept = record(conn, other, &[said("a:1", SAID), again]).await;
    assert_eq!(kept.len(), 2);
}

#[tokio::test]
async fn near_duplicates_found_by_two_replicas_at_once_make_one_scan() {
    let mut at = start().await;
    let terms = instructions("espresso");
    let manager = at.fixture.applied_manager(&mut at.conn, &terms, &[]).await;
    collapse(&mut at.conn, manager).await;
    let mut other = at.database.connect().await;
    let one = async |conn: &mut AsyncPgConnection, id: &str| {
        let post = said(id, SAID);
        let feed = crate::support::feed();
        scans::record(conn, &feed, &[new_scan(manager, &post)], Timestamp::now())
            .await
            .unwrap()
    };
    let (made, waiting) = at
        .conn
        .transaction(async |conn| {
            let made = one(conn, "a:1").await;
            let waiting = tokio::spawn(async move {
                let post = said("b:1", SAID);
                let feed = crate::support::feed();
                let made = other
                    .transaction(async |conn| {
                        scans::record(conn, &feed, &[new_scan(manager, &post)], Timestamp::now())
                            .await
                    })
                    .await;
                made.unwrap()
            });
            let waits = "pg_stat_activity WHERE datname = current_database() \
                         AND wait_event_type = 'Lock'";
            while at.database.count(waits).await == 0 {
                assert!(!waiting.is_finished(), "it waits for the first to be done");
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            Ok::<_, store::Error>((made, waiting))
        })
        .await
        .unwrap();
    assert!(waiting.await.unwrap().is_empty());
    assert_eq!(read(&mut at.conn, made[0]).await.places.len(), 1);
}

#[tokio::test]
async fn places_are_bounded_and_duplicates_expire_after_seven_days() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let terms = instructions("espresso");
    let manager = at.fixture.applied_manager(conn, &terms, &[]).await;
    collapse(conn, manager).await;
    let first = record(conn, manager, &[said("a:0", SAID)]).await[0];
    for batch in 0..3 {
        let posts: Vec<Post> = (1..=30)
            .map(|n| said(&format!("a:{}", batch * 30 + n), SAID))
            .collect();
        assert!(record(conn, manager, &posts).await.is_empty());
    }
    let scan = read(conn, first).await;
    assert_eq!(scan.places.len(), MAX_PLACES);
    assert_eq!(scan.places[49].url, "https://a-50.example/");

    run(
        conn,
        "UPDATE scan_likes SET create_time = create_time - interval '8 days'".to_owned(),
    )
    .await;
    let later = record(conn, manager, &[said("z:1", SAID)]).await;
    assert_eq!(later.len(), 1);
    let before = Timestamp::now().minus(scans::ALIKE_WITHIN).to_chrono();
    let purged = Purge::new(Unpartitioned::ScanLikes, before)
        .delete(conn, 1_000)
        .await
        .unwrap();
    assert!(purged >= 8, "{purged}");
    // A deleted Scan has no places.
    run(
        conn,
        format!("DELETE FROM scans WHERE id = '{}'", later[0].scan.to_uuid()),
    )
    .await;
    assert_eq!(record(conn, manager, &[said("z:2", SAID)]).await.len(), 1);
}

#[tokio::test]
async fn a_silent_scan_does_not_absorb_a_new_post() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let terms = instructions("espresso");
    let manager = at.fixture.applied_manager(conn, &terms, &[]).await;
    collapse(conn, manager).await;
    let past = async |conn: &mut AsyncPgConnection, id: &str| {
        let post = said(id, SAID);
        record_past(conn, &[new_scan(manager, &post)], true).await
    };
    let silent = past(conn, "a:1").await;
    assert_eq!(past(conn, "b:1").await, []);
    let today = record(conn, manager, &[said("c:1", SAID)]).await;
    assert_eq!(today.len(), 1, "a post of today, which somebody is sent");
    assert_eq!(record(conn, manager, &[said("d:1", SAID)]).await, []);
    let places = async |conn: &mut AsyncPgConnection, name| read(conn, name).await.places.len();
    assert_eq!(places(conn, silent[0]).await, 1);
    assert_eq!(places(conn, today[0]).await, 1);
}
