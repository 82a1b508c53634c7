//! Failures stay isolated, and a recovered feed is read from its last position.

use std::time::{Duration, Instant};

use domain::Timestamp;
use platform_simulator::{Fault, FaultKind, NewPost};
use store::managers;
use test_support::eventually;

use crate::{
    logs,
    support::{HACKER_NEWS, LEMMY, World, metric, post},
};

fn fault(kind: FaultKind, times: u32, value: u64) -> Fault {
    Fault::new("lemmy", kind, value).times(times)
}

/// Prometheus sees no increase in a counter that appears with its first event.
#[tokio::test]
async fn counters_of_alerts_begin_at_zero_before_the_first_event() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    for counter in [
        "earshot_posts_total{platform=\"lemmy\"} 0",
        "earshot_posts_gap_total{platform=\"lemmy\"} 0",
        "earshot_posts_quarantined_total{platform=\"lemmy\",reason=\"refused\"} 0",
        "earshot_posts_quarantined_total{platform=\"lemmy\",reason=\"unreadable\"} 0",
        "earshot_recheck_age_seconds{platform=\"lemmy\"} 0",
        "earshot_platform_throttled_total{platform=\"lemmy\"} 0",
        "earshot_poll_duration_seconds_count{outcome=\"store_failed\",platform=\"lemmy\"} 0",
    ] {
        assert!(metric(counter), "{counter}");
    }
    world.publish("lemmy", "A kettle");
    world.until_scanned(manager, 1).await;
    world
        .database
        .run("UPDATE scans SET create_time = create_time - interval '2 hours'")
        .await;
    eventually("the Scan that no dispatcher takes shows", async || {
        metric("earshot_waiting_oldest_seconds{kind=\"scan\"} 72")
    })
    .await;
    replica.stop().await;
}

#[tokio::test]
async fn a_failing_feed_backs_off_alone_and_recovers() {
    let world = World::new().await;
    // Records each change of a feed's failure count, and the wait until its next poll.
    for statement in [
        "CREATE TABLE turns (id bigserial, feed text, failures integer, wait double precision, error text)",
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN \
         INSERT INTO turns (feed, failures, wait, error) VALUES (NEW.name, NEW.failure_count, \
             extract(epoch FROM NEW.next_poll_time - NEW.last_poll_time), NEW.last_error); \
         RETURN NULL; END $$",
        "CREATE TRIGGER note AFTER UPDATE ON feeds FOR EACH ROW \
         WHEN (OLD.failure_count <> NEW.failure_count) EXECUTE FUNCTION note()",
    ] {
        world.database.run(statement).await;
    }
    let manager = world.manager("kettle", &[HACKER_NEWS, LEMMY]).await;
    let replica = world.ready_scanner().await;
    eventually("both are read", async || {
        let cursors = "feeds WHERE cursor IS NOT NULL";
        world.database.count(cursors).await == 2
    })
    .await;

    world.platforms.fail(fault(FaultKind::Status, 4, 500));
    world.publish("lemmy", "A kettle on Lemmy");
    for number in 0..3 {
        world.publish("hackernews", &format!("Kettle {number} on Hacker News"));
    }
    world.until_scanned(manager, 4).await;
    eventually("it has recovered", async || {
        world.feed(LEMMY, "failure_count").await == "0"
    })
    .await;
    assert_eq!(world.feed(LEMMY, "last_error").await, "");
    replica.stop().await;

    let of_lemmy = format!("turns WHERE feed = '{LEMMY}' ORDER BY id");
    let failures = world.database.texts("failures", &of_lemmy).await;
    // A poll in progress may have hit one of the failures on its second page.
    let count = failures.len() - 1;
    let expected = (1..=count).map(|n| n.to_string());
    let expected: Vec<String> = expected.chain(["0".to_owned()]).collect();
    assert_eq!(failures, expected);
    assert!((3..=4).contains(&count), "{failures:?}");
    let errors = world.database.texts("error", &of_lemmy).await;
    assert!(errors[..count].iter().all(|error| error.contains("500")));
    let waits = world.database.texts("wait", &of_lemmy).await;
    let waits: Vec<f64> = waits.iter().map(|wait| wait.parse().unwrap()).collect();
    assert!(waits[..count].is_sorted_by(|a, b| a < b), "{waits:?}");
    let others = format!("turns WHERE feed <> '{LEMMY}'");
    assert_eq!(world.database.count(&others).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn platform_with_every_kind_of_failure_loses_no_post_and_delays_no_other() {
    logs::keep();
    let mut world = World::new().await;
    for platform in &mut world.config.platforms {
        if platform.name == "lemmy" {
            // A separate name, so that logs and metrics belong to this test only.
            platform.name = "unwell".to_owned();
        }
    }
    let feeds = [HACKER_NEWS, "unwell:newest", "unwell:c/rust"];
    let manager = world.manager("kettle", &feeds).await;
    world.publish("lemmy", "A first post");
    let replica = world.ready_scanner().await;
    eventually("all are read", async || {
        world.database.count("feeds WHERE cursor IS NOT NULL").await == 3
    })
    .await;
    let begin = Instant::now();
    let (mut number, mut slowest) = (0, Duration::ZERO);
    for (kind, value) in [
        (FaultKind::Status, 500),
        (FaultKind::RetryAfter, 1),
        (FaultKind::Garbage, 0),
        (FaultKind::Huge, 1 << 40),
        (FaultKind::Reset, 0),
        // No response for longer than a request may take.
        (FaultKind::Delay, 60_000),
    ] {
        world.platforms.fail(fault(kind, 3, value));
        for _ in 0..3 {
            number += 1;
            world.publish("lemmy", &format!("Kettle {number} on Lemmy"));
            let title = format!("Kettle {number} on Hacker News");
            world.publish("hackernews", &title);
            let asked = Instant::now();
            world.until(manager, &title).await;
            slowest = slowest.max(asked.elapsed());
        }
        eventually("what failed shows", async || {
            let failed =
                "feeds WHERE platform = 'unwell' AND (trouble IS NOT NULL OR leased_by IS NOT NULL)";
            world.database.count(failed).await > 0
        })
        .await;
    }
    // A wait for the other platform would have taken as long as one response that never comes, 20 seconds.
    assert!(slowest < Duration::from_secs(15), "{slowest:?}");
    // One line a minute, regardless of the number of failures; each failure is counted.
    let minutes = usize::try_from(begin.elapsed().as_secs() / 60 + 1).unwrap();
    let lines = logs::about("unwell");
    let failures = lines.iter().filter(|line| line.contains("polls fail"));
    let failures = failures.count();
    assert!((1..=minutes).contains(&failures), "{lines:?}");
    // Plus the summary of all its feeds.
    assert!(lines.len() <= failures + 4 * minutes, "{lines:?}");
    for reason in ["status", "throttled", "malformed", "unavailable"] {
        let counted =
            format!(r#"earshot_poll_failures_total{{platform="unwell",reason="{reason}"}}"#);
        eventually(reason, async || {
            let soon = "UPDATE feeds SET next_poll_time = least(next_poll_time, now())";
            world.database.run(soon).await;
            metric(&counted)
        })
        .await;
    }
    let all = number * 2;
    eventually("nothing is lost", async || {
        // A feed that failed often waits long.
        let soon =
            "UPDATE feeds SET next_poll_time = least(next_poll_time, now() + interval '1 second')";
        world.database.run(soon).await;
        world.scanned(manager).await.len() >= all
    })
    .await;
    let found = world.scanned(manager).await;
    let distinct: std::collections::BTreeSet<_> = found.iter().collect();
    assert_eq!((found.len(), distinct.len()), (all, all));
    replica.stop().await;
}

#[tokio::test]
async fn database_outages_lose_no_post() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[HACKER_NEWS, LEMMY]).await;
    let replica = world.ready_scanner().await;
    for number in 0..12 {
        world.publish("hackernews", &format!("Kettle {number}, new"));
        world.publish("lemmy", &format!("Kettle {number}, old"));
        world.database.disconnect_all().await;
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    world.database.go_away().await;
    world.publish("lemmy", "The last kettle");
    tokio::time::sleep(Duration::from_millis(700)).await;
    world.database.come_back().await;
    world.until_scanned(manager, 25).await;
    // Read again after all of that.
    world.until_asked("/lemmy").await;
    world.until_asked("/hackernews").await;
    replica.stop().await;
    let scanned = world.scanned(manager).await;
    let distinct: std::collections::BTreeSet<_> = scanned.iter().collect();
    assert_eq!((scanned.len(), distinct.len()), (25, 25));
    assert_eq!(
        world
            .database
            .count("feeds WHERE leased_by IS NOT NULL")
            .await,
        0
    );
}

#[tokio::test]
async fn posts_since_the_first_watch_are_found_after_failed_polls() {
    let mut world = World::new().await;
    world.config.scanner.backfill = Duration::ZERO;
    let manager = world.manager("kettle", &[LEMMY]).await;
    world
        .database
        .run("UPDATE feeds SET create_time = now() - interval '10 minutes'")
        .await;
    let aged = |title, minutes| NewPost {
        time: Some(Timestamp::now().minus(Duration::from_mins(minutes))),
        ..post("lemmy", title)
    };
    world
        .platforms
        .publish(vec![aged("An old kettle", 15), aged("A kettle", 5)]);
    world.platforms.fail(fault(FaultKind::Status, 1, 500));
    let replica = world.ready_scanner().await;
    world.until(manager, "A kettle").await;
    assert_eq!(world.scanned(manager).await, ["A kettle"]);
    assert_eq!(
        world
            .database
            .count("feeds WHERE kept_since = create_time - interval '1 minute'")
            .await,
        1
    );
    replica.stop().await;
}

/// For example one that was renamed in the configuration.
#[tokio::test]
async fn feeds_of_a_platform_that_is_not_configured_are_reported() {
    let world = World::new().await;
    let manager = world.manager("kettle", &["renamed:newest", LEMMY]).await;
    let replica = world.ready_scanner().await;
    let detail = || {
        let report = replica.health.report();
        let check = report
            .checks
            .into_iter()
            .find(|one| one.name.ends_with("platforms"));
        check.and_then(|check| check.detail)
    };
    eventually("it is reported", async || {
        detail().as_deref() == Some("watched, and not configured: renamed")
    })
    .await;
    let series = r#"earshot_feeds{platform="renamed",state="UNCONFIGURED"}"#;
    assert!(metric(&format!("{series} 1")));
    assert!(replica.health.report().is_ready());
    let mut conn = world.database.connect().await;
    managers::delete(&mut conn, manager, Timestamp::now())
        .await
        .unwrap();
    eventually("it is over", async || {
        detail().is_none() && metric(&format!("{series} 0"))
    })
    .await;
    replica.stop().await;
}
