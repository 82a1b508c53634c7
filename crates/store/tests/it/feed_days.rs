//! The daily record of a feed.

use std::time::Duration;

use domain::{FeedName, Timestamp};
use store::feeds::{self, DayCounts, FeedGap, FeedIds, IdCounts};

use crate::support::{number, run, start};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000).unwrap()
}

fn gap(number: i64) -> FeedGap {
    FeedGap {
        from: (number % 2 == 0).then(|| at(number)),
        to: at(number + 10),
        reason: format!("gap\0 {number}"),
        is_filled: false,
    }
}

#[tokio::test]
async fn a_feed_day_sums_up_its_polls() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let names: Vec<FeedName> = ["forum:a", "forum:b"]
        .map(|name| name.parse().unwrap())
        .into();
    let poll = DayCounts {
        posts: 5,
        late: 1,
        gone: 2,
        quarantined: 3,
        ..DayCounts::default()
    };
    for gap in [None, Some(gap(7)), Some(gap(8))] {
        feeds::record_day(conn, &names[0], &poll, gap.as_ref())
            .await
            .unwrap();
    }
    feeds::record_day(conn, &names[1], &DayCounts::default(), None)
        .await
        .unwrap();
    for (ago, posts) in [(6, 4), (7, 9)] {
        run(
            conn,
            format!(
                "INSERT INTO feed_days VALUES \
                 ('forum:a', (now() AT TIME ZONE 'UTC')::date - {ago}, {posts}, 0, 0, 0, 0)"
            ),
        )
        .await;
    }
    let known: Vec<&FeedName> = names.iter().collect();
    let days = feeds::days_of(conn, at.fixture.namespace, &known)
        .await
        .unwrap();
    assert_eq!(days.len(), 1, "a poll that brought nothing leaves no row");
    let [today, first] = &days["forum:a"][..] else {
        panic!("the last seven days, newest first: {days:?}");
    };
    let counts = (today.posts, today.late, today.gone, today.quarantined);
    assert_eq!((counts, today.gap_count), ((15, 3, 6, 9), 2));
    assert_eq!(
        today.gaps,
        [
            FeedGap {
                reason: "gap 8".to_owned(),
                ..gap(8)
            },
            FeedGap {
                reason: "gap 7".to_owned(),
                ..gap(7)
            }
        ]
    );
    assert_eq!((first.posts, first.gap_count), (4, 0));
    assert!(today.day > first.day);
}

#[tokio::test]
async fn gaps_are_bounded_and_old_days_are_purged() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let name: FeedName = "forum:a".parse().unwrap();
    for number in 0..103 {
        let gap = gap(number);
        feeds::record_day(conn, &name, &DayCounts::default(), Some(&gap))
            .await
            .unwrap();
    }
    let listed = "SELECT count(*) AS number FROM feed_gaps";
    assert_eq!(number(conn, listed).await, 100);
    let days = feeds::days_of(conn, at.fixture.namespace, &[&name])
        .await
        .unwrap();
    let today = &days["forum:a"][0];
    assert_eq!((today.gap_count, today.gaps.len()), (103, 100));

    let week = Duration::from_hours(7 * 24);
    assert_eq!(feeds::purge_days(conn, week).await.unwrap(), 0);
    run(
        conn,
        "UPDATE feed_gaps SET find_time = now() - interval '8 days' WHERE id <= 50",
    )
    .await;
    run(
        conn,
        "UPDATE feed_days SET day = (now() AT TIME ZONE 'UTC')::date - 9",
    )
    .await;
    let old = number(
        conn,
        "SELECT count(*) AS number FROM feed_gaps WHERE id <= 50",
    )
    .await;
    let purged = feeds::purge_days(conn, week).await.unwrap();
    assert_eq!(i64::try_from(purged).unwrap(), old + 1);
}

#[tokio::test]
async fn missing_ids_are_listed_until_they_are_explained() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let name: FeedName = "forum:a".parse().unwrap();
    let day = |ids| DayCounts {
        ids,
        ..DayCounts::default()
    };
    let first = day(IdCounts {
        read: 5,
        other: 7,
        gone: 1,
        missing: (1_000..1_103).rev().collect(),
        up_to: Some(1_200),
        ..IdCounts::default()
    });
    let second = day(IdCounts {
        read: 2,
        missing: vec![1_205],
        explained: vec![1_001],
        up_to: Some(1_210),
        ..IdCounts::default()
    });
    for poll in [first, second] {
        feeds::record_day(conn, &name, &poll, None).await.unwrap();
    }
    let today = async |conn: &mut store::AsyncPgConnection| {
        let days = feeds::days_of(conn, at.fixture.namespace, &[&name])
            .await
            .unwrap();
        days["forum:a"][0].ids.clone().unwrap()
    };
    let expected = FeedIds {
        up_to: 1_210,
        read: 7,
        other: 7,
        gone: 1,
        not_visible: 103,
        unexplained: 0,
        unexplained_ids: vec![],
    };
    assert_eq!(today(conn).await, expected);
    for statement in [
        "UPDATE feed_days SET day = day - 1",
        "UPDATE feed_missing_ids SET miss_time = miss_time - interval '24 hours'",
    ] {
        run(conn, statement).await;
    }
    let expected = FeedIds {
        not_visible: 0,
        unexplained: 103,
        unexplained_ids: [1_000].into_iter().chain(1_002..1_101).collect(),
        ..expected
    };
    assert_eq!(today(conn).await, expected, "the lowest hundred are named");
}
