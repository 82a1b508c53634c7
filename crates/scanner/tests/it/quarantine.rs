//! One unusual post is skipped and recorded; its feed and the posts around it continue.

use store::feeds;
use test_support::eventually;

use crate::support::{HACKER_NEWS, LEMMY, World, metric, post};

/// Makes the database refuse posts that contain `poison`, by a constraint or as a data exception (SQLSTATE 22P05).
pub(crate) async fn refuse_poison(world: &World, is_rule: bool) {
    let raise = if is_rule {
        "RAISE check_violation USING MESSAGE = 'no poison here', CONSTRAINT = 'no_poison'"
    } else {
        "RAISE untranslatable_character USING MESSAGE = 'no poison here'"
    };
    for table in ["posts", "recent_posts"] {
        for statement in [
            format!(
                "CREATE FUNCTION refuse_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                 IF to_jsonb(NEW)::text LIKE '%poison%' THEN {raise}; END IF; RETURN NEW; END $$"
            ),
            format!(
                "CREATE TRIGGER refuse BEFORE INSERT ON {table} FOR EACH ROW \
                 EXECUTE FUNCTION refuse_{table}()"
            ),
        ] {
            world.database.run(&statement).await;
        }
    }
}

async fn quarantined(world: &World) -> Vec<String> {
    let column = "feed || ' ' || kind || ' ' || (post_id IS NOT NULL) || ' ' || reason";
    world
        .database
        .texts(column, "quarantined_posts ORDER BY id")
        .await
}

/// The refusal had another cause than the post.
#[tokio::test]
async fn post_is_stored_if_the_database_stops_refusing_while_the_cause_is_sought() {
    let world = World::new().await;
    for statement in [
        "CREATE SEQUENCE tries",
        // By the poll, and by the first look for the cause. Sequences count tries that are rolled back too.
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN \
         IF NEW.title = 'A kettle' AND nextval('tries') <= 2 THEN RAISE check_violation; END IF; RETURN NEW; END $$",
        "CREATE TRIGGER refuse BEFORE INSERT ON posts FOR EACH ROW EXECUTE FUNCTION refuse()",
    ] {
        world.database.run(statement).await;
    }
    let manager = world.manager("kettle", &[LEMMY]).await;
    world.publish("lemmy", "A kettle");
    let replica = world.ready_scanner().await;
    world.until_scanned(manager, 1).await;
    assert!(quarantined(&world).await.is_empty());
    assert_eq!(world.database.texts("last_value", "tries").await, ["3"]);
    replica.stop().await;
}

#[tokio::test]
async fn refused_post_is_skipped_and_recorded_once() {
    for is_rule in [true, false] {
        let world = World::new().await;
        refuse_poison(&world, is_rule).await;
        let manager = world.manager("kettle", &[LEMMY]).await;
        let titles: Vec<String> = (0..9)
            .map(|n| match n {
                // One matches, one does not.
                4 => "A kettle full of poison".to_owned(),
                7 => "A cup full of poison".to_owned(),
                _ => format!("Kettle {n}"),
            })
            .collect();
        let posts = titles.iter().map(|title| post("lemmy", title)).collect();
        world.platforms.publish(posts);
        // Two replicas that take over from each other.
        let replicas = [world.ready_scanner().await, world.ready_scanner().await];
        world.until_scanned(manager, 7).await;
        world.publish("lemmy", "A last kettle");
        world.until_scanned(manager, 8).await;
        world.until_asked("/lemmy").await;

        let found = quarantined(&world).await;
        let expected = format!("{LEMMY} REFUSED true no poison here");
        assert_eq!(found, [expected.clone(), expected]);
        let mut conn = world.database.connect().await;
        let health = feeds::health_of(&mut conn, manager).await.unwrap();
        assert_eq!(health[0].quarantined_posts, 2);
        // What the database said is not for customers.
        let (_, reason) = health[0].last_quarantine.clone().unwrap();
        assert_eq!(reason, "cannot be stored");
        assert_eq!(world.feed(LEMMY, "failure_count").await, "0");
        assert_eq!(world.feed(LEMMY, "gap_count").await, "0");
        for replica in replicas {
            replica.stop().await;
        }
    }
    assert!(metric(
        r#"earshot_posts_quarantined_total{platform="lemmy",reason="refused"}"#
    ));
}

#[tokio::test]
async fn a_failure_of_every_post_skips_none() {
    let world = World::new().await;
    for statement in [
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         RAISE check_violation USING MESSAGE = 'nothing at all'; END $$",
        "CREATE TRIGGER refuse BEFORE INSERT ON posts FOR EACH ROW EXECUTE FUNCTION refuse()",
    ] {
        world.database.run(statement).await;
    }
    let manager = world.manager("kettle", &[LEMMY]).await;
    world.publish("lemmy", "A kettle");
    let replica = world.ready_scanner().await;
    eventually("it has failed three times", async || {
        world.feed(LEMMY, "failure_count >= 3").await == "true"
    })
    .await;
    assert!(quarantined(&world).await.is_empty());
    world.database.run("DROP TRIGGER refuse ON posts").await;
    world.until_scanned(manager, 1).await;
    assert!(quarantined(&world).await.is_empty());
    replica.stop().await;
}

#[tokio::test]
async fn replica_that_dies_between_two_statements_counts_nothing_twice() {
    let world = World::new().await;
    refuse_poison(&world, true).await;
    // The first three commits that would record a post fail at their end, after the record.
    for statement in [
        "CREATE SEQUENCE ends",
        "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN \
         IF nextval('ends') <= 3 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN NEW; END $$",
        "CREATE TRIGGER die BEFORE UPDATE ON feeds FOR EACH ROW \
         WHEN (OLD.cursor IS DISTINCT FROM NEW.cursor AND NEW.quarantine_count > 0) EXECUTE FUNCTION die()",
    ] {
        world.database.run(statement).await;
    }
    let manager = world.manager("kettle", &[HACKER_NEWS]).await;
    world.publish("hackernews", "Kettle 1");
    world.publish("hackernews", "A kettle of poison");
    world.publish("hackernews", "Kettle 2");
    let replica = world.ready_scanner().await;
    world.until_scanned(manager, 2).await;
    let noted = async || world.feed(HACKER_NEWS, "quarantine_count").await == "1";
    eventually("it is noted", noted).await;
    world.until_asked("/hackernews").await;
    assert_eq!(world.feed(HACKER_NEWS, "quarantine_count").await, "1");
    assert_eq!(quarantined(&world).await.len(), 1);
    assert_eq!(world.scanned(manager).await.len(), 2);
    replica.stop().await;
}

/// A feed that can be read and yields nothing is not silent.
#[tokio::test]
async fn oddity_of_a_feed_shows_until_it_ends() {
    let world = World::new().await;
    let manager = world.manager("kettle", &["blog:newest"]).await;
    let replica = world.ready_scanner().await;
    eventually("the feed is empty", async || {
        let notice = world.feed("blog:newest", "notice").await;
        notice == "The feed has no entries."
    })
    .await;
    eventually("it is counted", async || {
        metric(r#"earshot_feeds_odd{platform="blog"} 1"#)
    })
    .await;
    world.publish("feed:blog", "A kettle");
    world.until_scanned(manager, 1).await;
    assert_eq!(world.feed("blog:newest", "notice").await, "");
    replica.stop().await;
}
