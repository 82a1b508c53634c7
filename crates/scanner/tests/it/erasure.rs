//! Posts that were deleted at their source are blanked here, if that is configured.

use std::time::Duration;

use domain::preview::Recent;
use platform_simulator::{Fault, FaultKind};
use store::{erasure, recent_posts};
use test_support::{Alert, eventually};

use crate::support::{HACKER_NEWS, LEMMY, World, configured, post};

/// Waits for the end of today's walk: its steps would overwrite the begin of the next one.
pub(crate) async fn until_walked(world: &World, platform: &str) {
    let ended = format!("rechecks WHERE platform = '{platform}' AND begin_time > now()");
    eventually("the walk ends", async || {
        world.database.count(&ended).await == 1
    })
    .await;
}

/// Runs today's walk again.
async fn walk(world: &World, platform: &str) {
    until_walked(world, platform).await;
    world
        .database
        .run("UPDATE rechecks SET next_time = now(), begin_time = now()")
        .await;
    until_walked(world, platform).await;
}

/// Makes the second looks due that an hour later would be.
async fn an_hour_passes(world: &World) {
    for statement in [
        "UPDATE missing_posts SET first_time = first_time - interval '1 hour'",
        "UPDATE rechecks SET next_time = now()",
    ] {
        world.database.run(statement).await;
    }
}

const BLANK: &str = "posts WHERE erase_time IS NOT NULL";

#[tokio::test]
async fn a_recheck_blanks_posts_that_are_gone_at_their_source() {
    let mut world = World::new().await;
    for platform in &mut world.config.platforms {
        platform.access.erase_deleted = Some(platform.name == "lemmy");
    }
    let manager = world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    let published = world.platforms.publish(vec![
        post("lemmy", "A kettle to be regretted"),
        post("lemmy", "A kettle that stays"),
        post("lemmy", "A toaster to be regretted"),
    ]);
    world.until_scanned(manager, 2).await;
    eventually("all are kept", async || {
        world.database.count("recent_posts").await == 3
    })
    .await;
    assert!(world.platforms.delete(published[0].id));
    assert!(world.platforms.delete(published[2].id));
    walk(&world, "lemmy").await;
    assert_eq!(world.database.count("missing_posts").await, 2);
    assert_eq!(world.database.count(BLANK).await, 0);
    assert_eq!(world.database.count("recent_posts").await, 3);
    an_hour_passes(&world).await;
    eventually("it is blank", async || {
        world
            .database
            .count("posts WHERE erase_time IS NOT NULL")
            .await
            == 1
            && world.database.count("recent_posts").await == 1
    })
    .await;
    let kept = "title <> '' AND text IS NULL AND user_name <> ''";
    let blank = "title = '' AND text IS NULL AND user_id = '' AND user_name = '' AND user_url = ''";
    assert_eq!(
        world.database.count(&format!("posts WHERE {kept}")).await,
        1
    );
    assert_eq!(
        world.database.count(&format!("posts WHERE {blank}")).await,
        1
    );
    // The Scan stays, with the post's id and address.
    assert_eq!(world.database.count("scans").await, 2);
    let ids = world
        .database
        .texts("post_id", "posts WHERE title = ''")
        .await;
    assert_eq!(ids, [published[0].post_id.clone()]);
    assert_eq!(world.database.count("missing_posts").await, 0);
    replica.stop().await;
}

#[tokio::test]
async fn post_that_cannot_be_blanked_keeps_no_other_waiting() {
    let mut world = World::new().await;
    for platform in &mut world.config.platforms {
        platform.access.erase_deleted = Some(platform.name == "lemmy");
    }
    for statement in [
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'nothing at all'; END $$",
        "CREATE TRIGGER refuse BEFORE UPDATE ON posts FOR EACH ROW \
         WHEN (OLD.title = 'A kettle full of poison') EXECUTE FUNCTION refuse()",
    ] {
        world.database.run(statement).await;
    }
    let manager = world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    let published = world.platforms.publish(vec![
        post("lemmy", "A kettle full of poison"),
        post("lemmy", "A kettle to be regretted"),
        post("lemmy", "A kettle that stays"),
    ]);
    world.until_scanned(manager, 3).await;
    let alert = Alert::watch("EarshotWorkSetAside", &replica).await;
    assert!(world.platforms.delete(published[0].id));
    assert!(world.platforms.delete(published[1].id));
    walk(&world, "lemmy").await;
    assert_eq!(world.database.count("missing_posts").await, 2);
    an_hour_passes(&world).await;
    let rests = "rechecks WHERE platform = 'lemmy' AND next_time > now() + interval '50 minutes'";
    eventually("the next look is an hour later", async || {
        world.database.count(rests).await == 1
    })
    .await;
    assert_eq!(world.database.count(BLANK).await, 1);
    assert_eq!(world.database.count("missing_posts").await, 1);
    alert.fires().await;
    world.database.run("DROP TRIGGER refuse ON posts").await;
    an_hour_passes(&world).await;
    eventually("it is blank", async || {
        world.database.count(BLANK).await == 2
    })
    .await;
    replica.stop().await;
}

#[tokio::test]
async fn a_recheck_reports_an_edit_once() {
    let mut world = World::new().await;
    for platform in &mut world.config.platforms {
        platform.access.erase_deleted = Some(platform.name == "hackernews");
    }
    let mut conn = world.database.connect().await;
    let url = "https://receiver.example/";
    world.fixture.connection(&mut conn, url).await;
    let receive = "UPDATE connections SET events = '{POST_EDITED}'";
    world.database.run(receive).await;
    let manager = world.manager("kettle", &[HACKER_NEWS]).await;
    let replica = world.ready_scanner().await;
    let published = world
        .platforms
        .publish(vec![post("hackernews", "A kettle"); 2]);
    world.until_scanned(manager, 2).await;
    walk(&world, "hackernews").await;
    assert_eq!(world.database.count("service_events").await, 0);
    assert!(world.platforms.edit(published[0].id, "It has a lid"));
    for _ in 0..2 {
        walk(&world, "hackernews").await;
        let edited = "service_events WHERE event_type = 'POST_EDITED'";
        let ids = world.database.texts("details->'post'->>'id'", edited).await;
        assert_eq!(ids, [published[0].post_id.clone()]);
    }
    replica.stop().await;
}

/// Such as a forum that was moved, for the minutes of a walk.
#[tokio::test]
async fn posts_that_are_there_at_the_second_look_stay() {
    let mut world = World::new().await;
    for platform in &mut world.config.platforms {
        platform.access.erase_deleted = Some(platform.name == "hackernews");
        // Without it, each post is looked up in the search.
        platform.items_url = None;
    }
    let manager = world.manager("kettle", &[HACKER_NEWS]).await;
    let replica = world.ready_scanner().await;
    world
        .platforms
        .publish(vec![post("hackernews", "A kettle"); 4]);
    world.until_scanned(manager, 4).await;
    until_walked(&world, "hackernews").await;
    // Fewer than a walk would doubt. Both stages of the walk ask.
    let fault = Fault::new("hackernews", FaultKind::Status, 404);
    world.platforms.fail(fault.on("/items/").times(8));
    walk(&world, "hackernews").await;
    assert_eq!(world.database.count("missing_posts").await, 4);
    assert_eq!(world.database.count(BLANK).await, 0);
    an_hour_passes(&world).await;
    eventually("they are found", async || {
        world.database.count("missing_posts").await == 0
    })
    .await;
    assert_eq!(world.database.count(BLANK).await, 0);
    assert_eq!(world.database.count("recent_posts").await, 4);
    replica.stop().await;
}

#[tokio::test]
async fn erasing_unknown_or_erased_posts_does_nothing() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    let published = world.platforms.publish(vec![post("lemmy", "A kettle")]);
    world.until_scanned(manager, 1).await;
    replica.stop().await;
    let mut conn = world.database.connect().await;
    let ids = [published[0].post_id.clone(), "nobody knows it".to_owned()];
    assert_eq!(erasure::erase(&mut conn, &ids).await.unwrap(), 1);
    assert_eq!(erasure::erase(&mut conn, &ids).await.unwrap(), 0);
    let feed = LEMMY.parse().unwrap();
    let recent = Recent {
        count: 10,
        ..Recent::default()
    };
    let kept = recent_posts::newest(&mut conn, &[feed], recent)
        .await
        .unwrap();
    assert!(kept.is_empty());
}

#[tokio::test]
async fn implausible_recheck_does_not_stop_the_walk() {
    let mut world = World::new().await;
    for platform in &mut world.config.platforms {
        platform.access.erase_deleted = Some(platform.name == "lemmy");
        platform.poll_interval = Some(Duration::from_secs(3_600));
    }
    let manager = world.manager("kettle", &[LEMMY]).await;
    world.platforms.publish(vec![post("lemmy", "A kettle")]);
    let replica = world.ready_scanner().await;
    world.until_scanned(manager, 1).await;
    until_walked(&world, "lemmy").await;
    world
        .platforms
        .fail(Fault::new("lemmy", FaultKind::Garbage, 0).times(1_000));
    let begin = "UPDATE rechecks SET next_time = now(), begin_time = now(), stage = 'POSTS', \
                 place_time = 'epoch', place_id = '00000000-0000-0000-0000-000000000000'";
    world.database.run(begin).await;
    eventually("the walk is past the post", async || {
        let past = "rechecks WHERE platform = 'lemmy' AND (stage <> 'POSTS' OR place_time > 'epoch' \
                    OR begin_time > now())";
        world.database.count(past).await == 1
    })
    .await;
    assert_eq!(
        world
            .database
            .count("posts WHERE erase_time IS NOT NULL")
            .await,
        0
    );
    replica.stop().await;
}

#[tokio::test]
async fn a_platform_that_finds_nothing_blanks_nothing() {
    find_nothing("hackernews", HACKER_NEWS, MANY).await;
}

#[tokio::test]
async fn discourse_that_finds_nothing_blanks_nothing() {
    find_nothing("discourse", "discourse:latest", MANY).await;
}

#[tokio::test]
async fn lobsters_that_finds_nothing_blanks_nothing() {
    find_nothing("lobsters", "lobsters:newest", MANY).await;
}

/// If so many in a row are missing, none is believed to be gone.
const MANY: usize = 10;

async fn find_nothing(platform: &str, feed: &str, posts: usize) {
    let mut world = World::new().await;
    let others = ["discourse", "lobsters"].map(|kind| world.platforms.settings_of(kind));
    world
        .config
        .platforms
        .extend(others.into_iter().map(configured));
    for one in &mut world.config.platforms {
        one.access.erase_deleted = Some(one.name == platform);
        one.access.requests_per_minute = Some(100_000);
        // Without it, each post of Hacker News is looked up in the search.
        one.items_url = None;
    }
    let manager = world.manager("kettle", &[feed]).await;
    let replica = world.ready_scanner().await;
    world
        .platforms
        .publish(vec![post(platform, "A kettle"); posts]);
    world.until_scanned(manager, posts).await;
    until_walked(&world, platform).await;
    // Like a response of a server in front of the platform.
    world
        .platforms
        .fail(Fault::new(platform, FaultKind::Status, 404).times(100_000));
    let begin = "UPDATE rechecks SET next_time = now(), begin_time = now(), stage = 'POSTS', \
                 place_time = 'epoch', place_id = '00000000-0000-0000-0000-000000000000'";
    world.database.run(begin).await;
    let ended = format!("rechecks WHERE platform = '{platform}' AND begin_time > now()");
    let of_platform = format!("rechecks WHERE platform = '{platform}'");
    let place = async || world.database.texts("place_id::text", &of_platform).await;
    // A step may request one post, and the scanner looks for the next one after seconds: each has its own limit.
    while world.database.count(&ended).await == 0 {
        let before = place().await;
        eventually("the walk goes on", async || {
            // It pauses between steps, and after an implausible answer.
            let no_pause =
                "UPDATE rechecks SET next_time = now() WHERE next_time > now() AND begin_time <= now()";
            world.database.run(no_pause).await;
            world.database.count(&ended).await == 1 || place().await != before
        })
        .await;
    }
    assert_eq!(world.database.count("missing_posts").await, 0, "{platform}");
    assert_eq!(world.database.count(BLANK).await, 0, "{platform}");
    let kept = world.database.count("recent_posts").await;
    assert_eq!(kept, i64::try_from(posts).unwrap(), "{platform}");
    replica.stop().await;
}
