use std::time::Duration;

use domain::FeedName;
use store::{
    platform_budgets as budgets,
    rates::{Settlement, Wanted},
};
use test_support::{Fixture, instructions};

use crate::support::{self, Start, number, run, start};

fn wanted(most: u32) -> Wanted {
    Wanted {
        id: rand_id(),
        least: 1,
        most,
    }
}

fn rand_id() -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().0 >> 1
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_together_never_get_more_than_the_limit() {
    let at = start().await;
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let pool = at.database.pool();
            tokio::spawn(async move {
                let mut got = 0;
                for _ in 0..20 {
                    let mut conn = pool.get().await.unwrap();
                    let wanted = wanted(3);
                    let stand = budgets::lease(&mut conn, "x", 30, None, Some(&wanted), 0);
                    got += stand.await.unwrap().grant.unwrap().points;
                }
                got
            })
        })
        .collect();
    let mut got = 0;
    for task in tasks {
        got += task.await.unwrap();
    }
    assert_eq!(got, 30);
}

#[tokio::test]
async fn unspent_requests_are_returned_and_half_is_reserved_for_urgent_ones() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let first = wanted(1);
    for _ in 0..4 {
        budgets::lease(conn, "x", 10, None, Some(&wanted(1)), 0)
            .await
            .unwrap();
    }
    budgets::lease(conn, "x", 10, None, Some(&first), 0)
        .await
        .unwrap();
    let low = budgets::lease(conn, "x", 10, None, Some(&wanted(1)), 5)
        .await
        .unwrap();
    let low = low.grant.unwrap();
    assert_eq!(low.points, 0);
    assert!(low.retry_in_ms > 30_000, "{low:?}");
    let settlement = Settlement {
        lease: first.id,
        spent: Vec::new(),
    };
    let next = wanted(1);
    let low = budgets::lease(conn, "x", 10, Some(&settlement), Some(&next), 5).await;
    assert_eq!(low.unwrap().grant.unwrap().points, 1);
    let other = budgets::lease(conn, "y", 1, None, Some(&next), 0).await;
    assert_eq!(
        other.unwrap().grant.unwrap().points,
        1,
        "another credential"
    );
}

#[tokio::test]
async fn a_platforms_pause_holds_for_all_replicas_and_is_never_shortened() {
    let mut at = start().await;
    let conn = &mut at.conn;
    assert_eq!(budgets::silent(conn, "x").await.unwrap(), Duration::ZERO);
    budgets::silence(conn, "x", Duration::from_secs(60))
        .await
        .unwrap();
    budgets::silence(conn, "x", Duration::from_secs(5))
        .await
        .unwrap();
    let silent = budgets::silent(conn, "x").await.unwrap();
    assert!(silent > Duration::from_secs(55), "{silent:?}");
    let stand = budgets::lease(conn, "x", 30, None, Some(&wanted(3)), 0)
        .await
        .unwrap();
    assert!(
        stand.silent > Duration::from_secs(55) && stand.grant.is_none(),
        "{stand:?}"
    );
    run(conn, "UPDATE platform_budgets SET silent_until = now()").await;
    let stand = budgets::lease(conn, "x", 30, None, Some(&wanted(3)), 0)
        .await
        .unwrap();
    assert!(stand.silent.is_zero() && stand.grant.is_some(), "{stand:?}");
}

#[tokio::test]
async fn paid_posts_of_a_day_are_spent_once_and_renewed_the_next_day() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let mut got = Vec::new();
    for _ in 0..4 {
        let posts = budgets::take_posts(conn, "x", 250, 100, None)
            .await
            .unwrap();
        assert!(posts.day_ends_in <= Duration::from_secs(86_400));
        got.push((posts.granted, posts.left));
    }
    assert_eq!(got, [(100, 150), (100, 50), (50, 0), (0, 0)]);
    // Posts that were not paid for become available again.
    budgets::refund_posts(conn, "x", 30, None).await.unwrap();
    let again = budgets::take_posts(conn, "x", 250, 100, None)
        .await
        .unwrap();
    assert_eq!((again.granted, again.left), (30, 0));
    // A limit that was lowered meanwhile removes nothing.
    let lowered = budgets::take_posts(conn, "x", 100, 10, None).await.unwrap();
    assert_eq!((lowered.granted, lowered.left), (0, 0));
    run(conn, "UPDATE platform_budgets SET day = day - 1").await;
    // Posts of yesterday are forgotten.
    budgets::refund_posts(conn, "x", 250, None).await.unwrap();
    let posts = budgets::take_posts(conn, "x", 250, 100, None)
        .await
        .unwrap();
    assert_eq!((posts.granted, posts.left), (100, 150));
}

/// Makes a Manager of `fixture` watch feeds.
async fn watch(at: &mut Start, fixture: &Fixture, feeds: &[&str]) {
    let manager = fixture.manager(&mut at.conn, &instructions("a"), &[]).await;
    support::watch(&mut at.conn, manager, feeds).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_cannot_spend_the_daily_share_of_another() {
    let mut at = start().await;
    let hostile = at.fixture.clone();
    let other = hostile.beside(&mut at.conn, "globex").await;
    let own: Vec<String> = (0..30).map(|n| format!("x:h{n}")).collect();
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    watch(&mut at, &hostile, &own).await;
    watch(&mut at, &other, &["x:o", "x:h0"]).await;
    // Two replicas at once, each for many feeds of one account.
    let tasks: Vec<_> = (0..2)
        .map(|replica| {
            let pool = at.database.pool();
            tokio::spawn(async move {
                let mut granted = 0;
                for n in 1..30 {
                    let mut conn = pool.get().await.unwrap();
                    let feed = format!("x:h{n}").parse().unwrap();
                    let taken =
                        budgets::take_posts(&mut conn, "x", 1_000_000, 100_000, Some(&feed));
                    let taken = taken.await.unwrap();
                    assert!(taken.account.is_some(), "{replica}");
                    granted += taken.granted;
                }
                granted
            })
        })
        .collect();
    let mut spent = 0;
    for task in tasks {
        spent += task.await.unwrap();
    }
    // The unused share of the other account, half of the day's posts, is released as the day goes on; the hostile
    // account cannot spend it before.
    let rest = number(
        &mut at.conn,
        "SELECT floor(extract(epoch FROM date_trunc('day', clock_timestamp(), 'UTC') + interval '1 day' \
             - clock_timestamp()))::bigint AS number",
    )
    .await;
    let kept = 500_000 * u64::try_from(rest).unwrap() / 86_400;
    assert!(u64::from(spent) <= 1_000_000 - kept, "{spent}, {kept} kept");
    assert!(spent >= 500_000, "{spent}");

    // The other account still has its share, also for a feed that both watch.
    let feed: FeedName = "x:h0".parse().unwrap();
    let theirs = budgets::take_posts(&mut at.conn, "x", 1_000_000, 100, Some(&feed));
    let theirs = theirs.await.unwrap();
    let left = 1_000_000 - spent;
    assert_eq!(theirs.granted, left.min(100));
    assert_eq!(theirs.account, Some(other.account));
    let account = theirs.account;
    budgets::refund_posts(&mut at.conn, "x", theirs.granted, account)
        .await
        .unwrap();
    let shares = "SELECT sum(day_posts)::bigint AS number FROM platform_budget_shares";
    assert_eq!(number(&mut at.conn, shares).await, i64::from(spent));
}
