//! Changes take effect on every replica, with and without their event.

use std::time::Duration;

use domain::{
    ManagerName,
    screen::{Language, Mute, MuteType},
};
use store::{managers, namespaces};
use test_support::eventually;

use crate::support::{HACKER_NEWS, LEMMY, World};

/// Changes a Manager like the gateway, and optionally publishes the event.
async fn change(
    world: &World,
    name: ManagerName,
    tells: bool,
    change: domain::manager::ManagerChange,
) {
    let mut conn = world.database.connect().await;
    let current = managers::lock(&mut conn, name).await.unwrap().unwrap();
    let updated = managers::update(
        &mut conn,
        current,
        &change,
        &test_support::QUOTAS,
        domain::Timestamp::now(),
    )
    .await
    .unwrap();
    let plan_version = updated.plan_version.expect("scanners must know");
    if tells {
        world.publish_changed(name, plan_version).await;
    }
}

fn muting(value: &str) -> domain::manager::ManagerChange {
    domain::manager::ManagerChange {
        mutes: Some(vec![Mute {
            mute_type: MuteType::Term,
            value: value.to_owned(),
            expire_time: None,
        }]),
        ..Default::default()
    }
}

#[tokio::test]
async fn deleted_manager_matches_nothing_with_or_without_an_event() {
    for tells in [true, false] {
        let world = World::new().await;
        // Scans are counted when they are created, because those of a deleted Manager are purged in the background.
        for statement in [
            "CREATE TABLE made (manager_id uuid)",
            "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN \
             INSERT INTO made VALUES (NEW.manager_id); RETURN NULL; END $$",
            "CREATE TRIGGER note AFTER INSERT ON scans FOR EACH ROW EXECUTE FUNCTION note()",
        ] {
            world.database.run(statement).await;
        }
        let feeds = [HACKER_NEWS, LEMMY];
        let gone = world.manager("kettle", &feeds).await;
        let stays = world.manager("kettle", &feeds).await;
        let replicas = [world.ready_scanner().await, world.ready_scanner().await];
        world.publish("lemmy", "First kettle");
        world.until_scanned(gone, 1).await;
        world.until_scanned(stays, 1).await;

        let mut conn = world.database.connect().await;
        let version = managers::delete(&mut conn, gone, domain::Timestamp::now())
            .await
            .unwrap()
            .expect("it was there");
        if tells {
            world.publish_changed(gone, version).await;
        }
        world.publish("lemmy", "Second kettle");
        world.publish("hackernews", "Third kettle");
        world.until_scanned(stays, 3).await;
        let id = gone.manager.to_uuid();
        let of_gone = format!("made WHERE manager_id = '{id}'");
        assert_eq!(world.database.count(&of_gone).await, 1, "told: {tells}");
        for replica in replicas {
            replica.stop().await;
        }
    }
}

#[tokio::test]
async fn mute_applies_to_the_next_post_with_or_without_an_event() {
    let world = World::new().await;
    let feeds = [HACKER_NEWS, LEMMY];
    let muted = world.manager("kettle", &feeds).await;
    let other = world.manager("kettle", &feeds).await;
    let replicas = [world.ready_scanner().await, world.ready_scanner().await];
    world.publish("lemmy", "A loud kettle");
    world.until_scanned(muted, 1).await;
    // Later, it would find what the second mute no longer covers.
    world.until_backfilled().await;

    for (nth, tells) in [(1, true), (2, false)] {
        change(&world, muted, tells, muting(&format!("loud{nth}"))).await;
        world.publish("lemmy", &format!("A loud{nth} kettle"));
        world.publish("hackernews", &format!("A loud{nth} kettle here"));
        world.publish("lemmy", &format!("A quiet{nth} kettle"));
        world.until_scanned(other, 1 + 3 * nth).await;
        eventually("the quiet one is scanned", async || {
            world.scanned(muted).await.len() == 1 + nth
        })
        .await;
    }
    assert_eq!(
        world.scanned(muted).await,
        ["A loud kettle", "A quiet1 kettle", "A quiet2 kettle"]
    );
    for replica in replicas {
        replica.stop().await;
    }
}

#[tokio::test]
async fn namespace_mutes_apply_to_all_its_managers_from_the_start() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[LEMMY]).await;
    let set = async |terms: Vec<Mute>| {
        let mut conn = world.database.connect().await;
        let current = namespaces::lock(&mut conn, manager.namespace).await;
        let change = domain::namespace::NamespaceChange {
            mutes: Some(terms),
            ..Default::default()
        };
        let now = domain::Timestamp::now();
        namespaces::update(
            &mut conn,
            current.unwrap().unwrap(),
            &change,
            &test_support::QUOTAS,
            now,
        )
        .await
        .unwrap();
    };
    set(muting("loud").mutes.unwrap()).await;
    let replica = world.ready_scanner().await;
    // Later, it would find what is no longer muted.
    world.until_backfilled().await;
    world.publish("lemmy", "A loud kettle");
    world.publish("lemmy", "A quiet kettle");
    world.until_scanned(manager, 1).await;
    set(Vec::new()).await;
    world.publish("lemmy", "Another loud kettle");
    world.until_scanned(manager, 2).await;
    assert_eq!(
        world.scanned(manager).await,
        ["A quiet kettle", "Another loud kettle"]
    );
    replica.stop().await;
}

#[tokio::test]
async fn expired_mute_has_no_effect_without_an_event() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    world.until_backfilled().await;
    // A busy machine may need several tries.
    for seconds in [8, 30, 100] {
        let mut mutes = muting("loud");
        let until = domain::Timestamp::now().plus(Duration::from_secs(seconds));
        mutes.mutes.as_mut().unwrap()[0].expire_time = Some(until);
        change(&world, manager, true, mutes).await;
        let muted = format!("A loud kettle for {seconds} seconds");
        let quiet = format!("A quiet kettle for {seconds} seconds");
        world.publish("lemmy", &muted);
        world.publish("lemmy", &quiet);
        world.until(manager, &quiet).await;
        if domain::Timestamp::now() >= until {
            continue;
        }
        tokio::time::sleep(until.since(domain::Timestamp::now())).await;
        let again = format!("Another loud kettle after {seconds} seconds");
        world.publish("lemmy", &again);
        world.until(manager, &again).await;
        assert!(!world.scanned(manager).await.contains(&muted));
        replica.stop().await;
        return;
    }
    panic!("the machine is too slow for this test");
}

#[tokio::test]
async fn posts_in_other_languages_are_left_out() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    let english: Language = "en".parse().unwrap();
    let wish = domain::manager::ManagerChange {
        languages: Some(vec![english]),
        ..Default::default()
    };
    change(&world, manager, true, wish).await;
    world.publish(
        "lemmy",
        "Welchen kettle könnt ihr für eine kleine Küche mit hartem Wasser empfehlen?",
    );
    world.publish(
        "lemmy",
        "Which kettle would you recommend for a small kitchen with hard water?",
    );
    world.publish("lemmy", "Kettle?");
    world.until_scanned(manager, 2).await;
    assert_eq!(
        world.scanned(manager).await,
        [
            "Which kettle would you recommend for a small kitchen with hard water?",
            "Kettle?"
        ]
    );
    replica.stop().await;
}

#[tokio::test]
async fn scans_contain_the_positions_of_their_terms() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    world.publish("lemmy", "Wür: a kettle");
    world.until_scanned(manager, 1).await;
    let spans = world.database.texts("matched ->> 'spans'", "scans").await;
    let spans: serde_json::Value = serde_json::from_str(&spans[0]).unwrap();
    assert_eq!(
        spans,
        serde_json::json!([{"field": "title", "start": 7, "end": 13, "term": "kettle"}])
    );
    replica.stop().await;
}
