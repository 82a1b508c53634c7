//! Events that arrive twice, late, or never.

use std::time::Duration;

use domain::{
    instructions::Sells,
    manager::{ApplyErrorCode, Mode, Origin, SourceType},
};
use test_support::{Answer, TestServer, eventually};

use crate::support::{BIKES, ESPRESSO, World, applied, input};

/// A server with a slow page about espresso, and a fast one about bicycles.
async fn customer() -> TestServer {
    TestServer::start(|_, request| match &*request.path {
        "/bikes" => Answer::page(BIKES),
        _ => Answer::after(Duration::from_secs(2), Answer::page(ESPRESSO)),
    })
    .await
}

async fn plan_version(world: &World) -> String {
    world
        .database
        .texts("version", "plan_version")
        .await
        .concat()
}

#[tokio::test]
async fn a_result_for_an_older_input_is_dropped() {
    let world = World::new().await;
    let server = customer().await;
    let mut news = world.news();
    let compiler = world.compiler();
    let name = world.automatic(&[server.url("/")]).await;
    world.publish_submitted(name, 1).await;
    eventually("the page is being fetched", async || server.count() == 1).await;

    // The customer changes the input meanwhile.
    world
        .database
        .run(&format!(
            "UPDATE managers SET generation = 2, input = jsonb_set(input, '{{urls}}', '[\"{}\"]')",
            server.url("/bikes")
        ))
        .await;
    world.publish_submitted(name, 2).await;
    let event = applied(&mut news).await;
    assert_eq!((event.name, event.generation), (name, 2));
    let brief = world.get(name).await.instructions.unwrap().brief;
    eventually("the older page has arrived", async || server.open() == 0).await;
    // The compiler ends what it has begun.
    compiler.stop().await;
    let manager = world.get(name).await;
    assert_eq!(manager.instructions.unwrap().brief, brief);
    assert_eq!(plan_version(&world).await, event.plan_version.to_string());
}

#[tokio::test]
async fn sells_of_the_input_replaces_what_the_pages_say() {
    let world = World::new().await;
    let server = customer().await;
    let mut origin = input(&[server.url("/bikes")]);
    let given = Sells {
        summary: "Bicycles that fold.".to_owned(),
        offers: vec!["folding bike".to_owned()],
    };
    if let Origin::Input(input) = &mut origin {
        input.sells = Some(given.clone());
    }
    let name = world
        .waiting_of(&world.fixture, SourceType::Forum, origin)
        .await;
    let compiler = world.compiler();
    world.publish_submitted(name, 1).await;
    let manager = world.until(name, "APPLIED").await;
    compiler.stop().await;
    assert_eq!(manager.mode, Mode::Automatic);
    assert_eq!(manager.instructions.unwrap().sells, Some(given));
}

#[tokio::test]
async fn two_compilers_and_repeated_events_apply_once() {
    let world = World::new().await;
    let server = customer().await;
    let mut news = world.news();
    let compilers = [world.compiler(), world.compiler()];
    let before: i64 = plan_version(&world).await.parse().unwrap();
    let mut names = Vec::new();
    for _ in 0..3 {
        let name = world.automatic(&[server.url("/")]).await;
        for _ in 0..4 {
            world.publish_submitted(name, 1).await;
        }
        names.push(name);
    }
    let mut versions: Vec<i64> = Vec::new();
    for _ in &names {
        versions.push(applied(&mut news).await.plan_version);
    }
    versions.sort_unstable();
    assert_eq!(versions, [before + 1, before + 2, before + 3]);
    for name in names {
        world.until(name, "APPLIED").await;
        // A late event has no effect.
        world.publish_submitted(name, 1).await;
    }
    for compiler in compilers {
        compiler.stop().await;
    }
    assert_eq!(plan_version(&world).await, (before + 3).to_string());
}

#[tokio::test]
async fn manager_whose_event_is_lost_is_still_compiled() {
    let world = World::new().await;
    let server = customer().await;
    let name = world.automatic(&[server.url("/bikes")]).await;
    let mut waiting = vec![(name, "input", 20)];
    // Rows of a later version, all at the head of the queue: more than one poll reads.
    for _ in 0..25 {
        let broken = world.automatic(&[server.url("/bikes")]).await;
        waiting.push((broken, "'{\"type\": \"TELEPATHY\"}'", 30));
    }
    for (name, input, age) in waiting {
        world
            .database
            .run(&format!(
                "UPDATE managers SET input = {input}, submit_time = now() - interval '{age} s' WHERE id = '{}'",
                name.manager.to_uuid()
            ))
            .await;
    }
    let compiler = world.compiler();
    eventually("it is applied", async || {
        let id = name.manager.to_uuid();
        let from = format!("managers WHERE id = '{id}' AND state = 'APPLIED'");
        world.database.count(&from).await == 1
    })
    .await;
    compiler.stop().await;
}

#[tokio::test]
async fn pages_that_never_answer_hold_up_neither_manual_managers_nor_other_accounts() {
    const HOSTILE: usize = 40;
    let world = World::new().await;
    let server = TestServer::start(|_, request| match &*request.path {
        "/bikes" => Answer::page(BIKES),
        _ => Answer::after(Duration::from_secs(600), Answer::page(ESPRESSO)),
    })
    .await;
    for _ in 0..HOSTILE {
        world.automatic(&[server.url("/never")]).await;
    }
    let compiler = world.compiler();
    eventually("pages are being fetched", async || server.count() > 0).await;

    let manual = world
        .manual(SourceType::Forum, test_support::instructions("kettle"))
        .await;
    world.publish_submitted(manual, 1).await;
    world.until(manual, "APPLIED").await;
    let other = world.beside("globex").await;
    let source = SourceType::Forum;
    let automatic = input(&[server.url("/bikes")]);
    let automatic = world.waiting_of(&other, source, automatic).await;
    let instructions = Origin::Instructions(test_support::instructions("kettle"));
    let theirs = world.waiting_of(&other, source, instructions).await;
    for name in [automatic, theirs] {
        world.publish_submitted(name, 1).await;
        world.until(name, "APPLIED").await;
    }
    // They arrived last and were claimed first: most of the earlier ones are not even started.
    let waiting = "managers WHERE state = 'PENDING_APPLY' AND compiled_by";
    let (taken, untaken) = (
        world
            .database
            .count(&format!("{waiting} IS NOT NULL"))
            .await,
        world.database.count(&format!("{waiting} IS NULL")).await,
    );
    assert!(taken <= 4, "{taken} of one account at a time");
    assert!(untaken > 0, "{untaken} were started after");
    compiler.kill();
}

#[tokio::test]
async fn slow_pages_do_not_count_as_a_lost_event() {
    let world = World::new().await;
    let server = TestServer::start(|_, _| {
        Answer::after(Duration::from_millis(4_500), Answer::page(ESPRESSO))
    })
    .await;
    let name = world.automatic(&[server.url("/")]).await;
    let compiler = world.compiler();
    world.publish_submitted(name, 1).await;
    eventually("the page is being fetched", async || server.count() == 1).await;
    world
        .database
        .run("UPDATE managers SET submit_time = now() - interval '30 s'")
        .await;
    world.until(name, "APPLIED").await;
    assert_eq!(server.count(), 1, "a sweep compiled it meanwhile");
    compiler.stop().await;
}

#[tokio::test]
async fn manager_that_ends_three_compilers_fails_and_the_others_go_on() {
    let world = World::new().await;
    let server = TestServer::start(|_, request| match &*request.path {
        "/bikes" => Answer::page(BIKES),
        _ => Answer::after(Duration::from_secs(600), Answer::page(ESPRESSO)),
    })
    .await;
    let deadly = world.automatic(&[server.url("/never")]).await;
    for _ in 0..3 {
        let compiler = world.compiler();
        let claimed = format!(
            "managers WHERE compiled_by = '{}'",
            compiler.backbone.replica
        );
        eventually("it is claimed", async || {
            world.database.count(&claimed).await == 1
        })
        .await;
        let other = world.automatic(&[server.url("/bikes")]).await;
        world.publish_submitted(other, 1).await;
        world.until(other, "APPLIED").await;
        compiler.kill();
    }
    let compiler = world.compiler();
    world.until(deadly, "APPLY_FAILED").await;
    let error = world.get(deadly).await.apply_error.unwrap();
    let reason = "could not be compiled: the service stopped 3 times while it worked on this";
    assert_eq!(error.message, reason);
    compiler.kill();
}

#[tokio::test]
async fn manager_that_the_database_refuses_fails_and_the_others_go_on() {
    let world = World::new().await;
    let server = customer().await;
    let automatic = world.automatic(&[server.url("/espresso")]).await;
    let instructions = test_support::instructions("kettle");
    let manual = world.manual(SourceType::Forum, instructions).await;
    let [first, second] = [automatic, manual].map(|name| name.manager.to_uuid());
    let refuse = format!(
        "ALTER TABLE managers ADD CONSTRAINT refuse \
         CHECK (id NOT IN ('{first}', '{second}') OR state <> 'APPLIED') NOT VALID"
    );
    world.database.run(&refuse).await;
    let compiler = world.compiler();
    for (refused, code) in [
        (automatic, ApplyErrorCode::NoUsableContent),
        (manual, ApplyErrorCode::InvalidInstructions),
    ] {
        world.until(refused, "APPLY_FAILED").await;
        let error = world.get(refused).await.apply_error.unwrap();
        assert_eq!(error.code, code);
        assert!(error.message.contains("its log"), "{}", error.message);
        assert!(!error.message.contains("refuse"), "{}", error.message);
    }
    let other = world.automatic(&[server.url("/espresso")]).await;
    world.until(other, "APPLIED").await;
    compiler.stop().await;
}

#[tokio::test]
async fn lost_connections_and_a_killed_compiler_lose_no_submission() {
    let world = World::new().await;
    let server = customer().await;
    let first = world.compiler();
    let name = world.automatic(&[server.url("/")]).await;
    world.publish_submitted(name, 1).await;
    eventually("the page is being fetched", async || server.count() == 1).await;
    world.database.disconnect_all().await;
    world.until(name, "APPLIED").await;

    let name = world.automatic(&[server.url("/")]).await;
    world.publish_submitted(name, 1).await;
    eventually("the page is being fetched", async || server.count() == 2).await;
    first.kill();
    // Its event is lost with it: another process takes its claim.
    let second = world.compiler();
    world.until(name, "APPLIED").await;
    second.stop().await;
}

#[tokio::test]
async fn shutdown_finishes_compilations_in_progress() {
    let world = World::new().await;
    let server = customer().await;
    let compiler = world.compiler();
    let name = world.automatic(&[server.url("/")]).await;
    world.publish_submitted(name, 1).await;
    eventually("the page is being fetched", async || server.count() == 1).await;
    compiler.stop().await;
    assert_eq!(world.get(name).await.state.as_str(), "APPLIED");
}

#[tokio::test]
async fn comments_are_watched_on_request() {
    let world = World::new().await;
    let cases = [
        ("{POST}", vec!["hackernews:newest", "lemmy:newest"]),
        (
            "{POST,COMMENT}",
            vec![
                "hackernews:newest",
                "lemmy:newest",
                "hackernews:comments",
                "lemmy:comments",
            ],
        ),
        ("{COMMENT}", vec!["hackernews:comments", "lemmy:comments"]),
    ];
    let mut submitted = Vec::new();
    for (kinds, expected) in cases {
        // Without feeds, it watches the newest posts.
        let mut instructions = test_support::instructions("kettle");
        instructions.feeds.clear();
        let name = world.manual(SourceType::Forum, instructions).await;
        let id = name.manager.to_uuid();
        let sql = format!("UPDATE managers SET kinds = '{kinds}' WHERE id = '{id}'");
        world.database.run(&sql).await;
        submitted.push((name, kinds, expected));
    }
    // Started now, so that it compiles none before its kinds are set.
    let compiler = world.compiler();
    for (name, kinds, expected) in submitted {
        let manager = world.until(name, "APPLIED").await;
        let feeds: Vec<String> = { manager.instructions }
            .unwrap()
            .feeds
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(feeds, expected, "{kinds}");
    }
    compiler.stop().await;
}
