//! Recompilation of applied Managers: when it is due, by one process, and never to a worse result.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use domain::{
    Focus, ManagerName, ScanName, Sensitivity, Timestamp, manager::SourceType, scan::ScanChange,
};
use store::{AsyncConnection, feedback, managers, scans};
use test_support::{Answer, Replica, TestServer, eventually, instructions, post};

use crate::support::{BIKES, ESPRESSO, World, applied, input};

/// A customer's server whose page changes, hangs or fails, depending on the number that is set.
async fn customer() -> (TestServer, Arc<AtomicU8>) {
    let mood = Arc::new(AtomicU8::new(0));
    let shown = Arc::clone(&mood);
    let server = TestServer::start(move |_, _| match shown.load(Ordering::SeqCst) {
        0 => Answer::page(ESPRESSO),
        1 => Answer::page(BIKES),
        2 => Answer::Status(503),
        4 => Answer::Status(404),
        _ => Answer::after(Duration::from_secs(3), Answer::page(BIKES)),
    })
    .await;
    (server, mood)
}

/// Creates a Manager that another compiler, already stopped, has applied.
async fn at_work(world: &World, server: &TestServer) -> ManagerName {
    let compiler = world.compiler();
    let name = world.automatic(&[server.url("/")]).await;
    world.publish_submitted(name, 1).await;
    world.until(name, "APPLIED").await;
    compiler.stop().await;
    name
}

async fn age_only(world: &World, name: ManagerName) {
    let id = name.manager.to_uuid();
    let sql =
        format!("UPDATE managers SET apply_time = now() - interval '9 days' WHERE id = '{id}'");
    assert_eq!(world.database.run(&sql).await, 1);
}

async fn age(world: &World) {
    world
        .database
        .run("UPDATE managers SET apply_time = now() - interval '9 days'")
        .await;
}

/// Another Manager that is compiled again later: what was due before it had its turn by then.
struct Witness {
    name: ManagerName,
    _server: TestServer,
}

impl Witness {
    async fn at_work(world: &World) -> Self {
        let (server, _) = customer().await;
        let name = at_work(world, &server).await;
        Self {
            name,
            _server: server,
        }
    }

    async fn is_compiled_again(&self, world: &World) {
        age_only(world, self.name).await;
        let aged = world.get(self.name).await.apply_time;
        eventually("another Manager is compiled again", async || {
            world.get(self.name).await.apply_time > aged
        })
        .await;
    }
}

async fn has_term(world: &World, name: ManagerName, text: &str) -> bool {
    let found = world.get(name).await.instructions.unwrap();
    found.include.iter().any(|term| term.text == text)
}

async fn until_bikes(world: &World, name: ManagerName) {
    eventually("it is compiled again", async || {
        has_term(world, name, "bikes").await
    })
    .await;
}

#[tokio::test]
async fn changed_pages_are_read_again_at_the_interval_by_one_of_two() {
    let world = World::new().await;
    let (server, mood) = customer().await;
    let witness = Witness::at_work(&world).await;
    let name = at_work(&world, &server).await;
    mood.store(3, Ordering::SeqCst);
    age_only(&world, name).await;
    let (mut news, before) = (world.news(), server.count());
    let compilers: [Replica; 2] = [world.compiler(), world.compiler()];
    until_bikes(&world, name).await;
    let event = applied(&mut news).await;
    assert_eq!((event.name, event.generation), (name, 1));
    assert_eq!(world.get(name).await.state.as_str(), "APPLIED");
    witness.is_compiled_again(&world).await;
    for compiler in compilers {
        compiler.stop().await;
    }
    assert_eq!(server.count(), before + 1, "both compiled it");
}

#[tokio::test]
async fn unavailable_pages_keep_instructions_and_state() {
    let world = World::new().await;
    let (server, mood) = customer().await;
    let witness = Witness::at_work(&world).await;
    let name = at_work(&world, &server).await;
    let before = world.get(name).await;
    mood.store(2, Ordering::SeqCst);
    age_only(&world, name).await;
    let aged = world.get(name).await.apply_time;
    let asked = server.count();
    let compiler = world.compiler();
    eventually("the page was asked for", async || server.count() > asked).await;
    witness.is_compiled_again(&world).await;
    compiler.stop().await;
    let after = world.get(name).await;
    assert_eq!(after.instructions, before.instructions);
    assert_eq!((after.state, after.apply_error), (before.state, None));
    assert_eq!(after.apply_time, aged, "nothing was applied");
}

#[tokio::test]
async fn claim_of_a_dead_compiler_is_taken_over() {
    let world = World::new().await;
    let (server, mood) = customer().await;
    let name = at_work(&world, &server).await;
    mood.store(3, Ordering::SeqCst);
    age(&world).await;
    let asked = server.count();
    let first = world.compiler();
    eventually("the page is being fetched", async || server.count() > asked).await;
    first.kill();
    assert!(
        has_term(&world, name, "espresso").await,
        "the old ones stay at work"
    );
    // Simulates the end of the pause.
    let freed = world
        .database
        .run("UPDATE managers SET recompile_after = now() - interval '1 s' WHERE recompile_after > now()")
        .await;
    assert_eq!(freed, 1, "it was claimed");
    let second = world.compiler();
    until_bikes(&world, name).await;
    second.stop().await;
}

#[tokio::test]
async fn recompilation_that_ends_three_compilers_is_set_aside_and_the_owner_is_told() {
    let world = World::new().await;
    let is_deadly = Arc::new(AtomicU8::new(0));
    let deadly = Arc::clone(&is_deadly);
    let server = TestServer::start(move |_, _| match deadly.load(Ordering::SeqCst) {
        0 => Answer::page(ESPRESSO),
        _ => Answer::Hang,
    })
    .await;
    let name = at_work(&world, &server).await;
    is_deadly.store(1, Ordering::SeqCst);
    let due = "UPDATE managers SET recompile_after = now() - interval '1 s'";
    age(&world).await;
    for _ in 0..3 {
        let asked = server.count();
        let compiler = world.compiler();
        eventually("the page is being fetched", async || server.count() > asked).await;
        compiler.kill();
        // Simulates the end of the pause.
        world.database.run(due).await;
    }
    let asked = server.count();
    let compiler = world.compiler();
    eventually("it is set aside", async || {
        let set_aside = "leases WHERE kind = 'recompile' AND leased_by IS NULL AND error <> ''";
        world.database.count(set_aside).await == 1
    })
    .await;
    assert_eq!(server.count(), asked, "it was not tried again");
    let brief = world.get(name).await.instructions.unwrap().brief;
    let told =
        " They were not compiled again: the service stopped 3 times while it worked on this.";
    assert!(brief.ends_with(told), "{brief}");
    assert!(has_term(&world, name, "espresso").await);
    let mut conn = world.database.connect().await;
    feedback::record_setback(&mut conn, name, "another reason")
        .await
        .unwrap();
    let brief = world.get(name).await.instructions.unwrap().brief;
    assert_eq!(brief.matches("not compiled again").count(), 1, "{brief}");
    compiler.kill();
}

#[tokio::test]
async fn failing_pages_of_one_account_delay_no_recompilation_of_another() {
    let world = World::new().await;
    let server = TestServer::start(|_, request| match &*request.path {
        "/bikes" => Answer::page(BIKES),
        _ => Answer::after(Duration::from_secs(600), Answer::page(ESPRESSO)),
    })
    .await;
    let other = world.beside("globex").await;
    let (source, page) = (SourceType::Forum, input(&[server.url("/bikes")]));
    let theirs = world.waiting_of(&other, source, page).await;
    let mut conn = world.database.connect().await;
    let mut names = vec![theirs];
    for _ in 0..12 {
        names.push(world.automatic(&[server.url("/never")]).await);
    }
    for name in names {
        let (old, now) = (instructions("espresso"), Timestamp::now());
        managers::apply(&mut conn, name, 1, &old, &test_support::QUOTAS, now)
            .await
            .unwrap();
    }
    age(&world).await;
    age_only(&world, theirs).await;
    // All others have been due for longer.
    let last = format!(
        "UPDATE managers SET apply_time = apply_time - interval '1 day' WHERE id <> '{}'",
        theirs.manager.to_uuid()
    );
    assert_eq!(world.database.run(&last).await, 12);
    let compiler = world.compiler();
    until_bikes(&world, theirs).await;
    let untouched =
        "managers WHERE recompile_after IS NULL AND apply_time < now() - interval '9.5 days'";
    assert!(world.database.count(untouched).await > 0, "they wait");
    compiler.kill();
}

#[tokio::test]
async fn concurrent_change_by_the_customer_wins() {
    let world = World::new().await;
    let (server, mood) = customer().await;
    let witness = Witness::at_work(&world).await;
    let name = at_work(&world, &server).await;
    mood.store(3, Ordering::SeqCst);
    age_only(&world, name).await;
    let asked = server.count();
    let compiler = world.compiler();
    eventually("the page is being fetched", async || server.count() > asked).await;
    let mut conn = world.database.connect().await;
    world
        .database
        .run("UPDATE managers SET generation = 2")
        .await;
    let theirs = instructions("teapot");
    managers::apply(
        &mut conn,
        name,
        2,
        &theirs,
        &test_support::QUOTAS,
        Timestamp::now(),
    )
    .await
    .unwrap();
    // Compiled after the page that is being fetched has arrived.
    eventually("the page is there", async || server.open() == 0).await;
    witness.is_compiled_again(&world).await;
    compiler.stop().await;
    let late = instructions("late");
    let stale = feedback::reapply(
        &mut conn,
        name,
        1,
        &late,
        &test_support::QUOTAS,
        Timestamp::now(),
    )
    .await;
    assert_eq!(stale.unwrap(), None);
    assert!(!has_term(&world, name, "bikes").await);
}

/// Scans of this many posts, with the term that led to them.
async fn scanned(world: &World, name: ManagerName, count: usize) {
    let matched: domain::Match = serde_json::from_value(
        serde_json::json!({"score": 0.6, "terms": ["espresso"], "focus": "SALES"}),
    )
    .unwrap();
    let posts: Vec<_> = (0..count)
        .map(|at| post(&format!("forum:{at}"), "Espresso"))
        .collect();
    let matches: Vec<_> = posts
        .iter()
        .map(|post| scans::NewScan {
            manager: name,
            post,
            matched: matched.clone(),
        })
        .collect();
    let feed = "hackernews:newest".parse().unwrap();
    let mut conn = world.database.connect().await;
    conn.transaction(async |conn| {
        let (now, origin) = (Timestamp::now(), scans::Origin::Poll);
        let mut counter = scans::ScanCounter::new(u32::MAX);
        let recorded =
            scans::record_from(conn, &feed, 9, &matches, now, origin, &mut counter).await?;
        assert_eq!(recorded.made.len(), count);
        counter.store(conn).await
    })
    .await
    .unwrap();
}

/// Finds so many further Scans worthless, like the gateway.
async fn judge(world: &World, manager: ManagerName, count: usize) {
    let fresh = format!("scans WHERE update_time = create_time ORDER BY id LIMIT {count}");
    let ids = world.database.texts("ulid(id)", &fresh).await;
    assert_eq!(ids.len(), count);
    let mut conn = world.database.connect().await;
    for id in ids {
        let name = ScanName {
            namespace: manager.namespace,
            manager: manager.manager,
            scan: id.parse().unwrap(),
        };
        let change = ScanChange {
            value: Some(false),
            ..ScanChange::default()
        };
        let scan = scans::lock(&mut conn, name).await.unwrap().unwrap();
        scans::update(&mut conn, scan, &change, Timestamp::now())
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn five_verdicts_trigger_a_recompile_and_four_do_not() {
    let world = World::new().await;
    let (server, _) = customer().await;
    let witness = Witness::at_work(&world).await;
    let name = at_work(&world, &server).await;
    scanned(&world, name, 6).await;
    judge(&world, name, 4).await;
    let compiler = world.compiler();
    witness.is_compiled_again(&world).await;
    assert_eq!(
        world.get(name).await.instructions.unwrap().threshold,
        Some(matching::threshold(Focus::Sales, Sensitivity::Balanced))
    );

    judge(&world, name, 1).await;
    eventually("it is compiled again", async || {
        world.get(name).await.instructions.unwrap().threshold
            > Some(matching::threshold(Focus::Sales, Sensitivity::Balanced))
    })
    .await;
    let heeded = world.get(name).await.instructions.unwrap();
    assert!(
        heeded.brief.contains("Of 5 judged matches, 5 were not"),
        "{}",
        heeded.brief
    );
    // A verdict that was applied does not trigger another recompilation.
    let asked = server.count();
    witness.is_compiled_again(&world).await;
    compiler.stop().await;
    assert_eq!(server.count(), asked);
}

#[tokio::test]
async fn unavailable_page_removes_nothing_from_the_old_instructions() {
    let world = World::new().await;
    let (coffee, _) = customer().await;
    let (bikes, mood) = customer().await;
    mood.store(1, Ordering::SeqCst);
    let compiler = world.compiler();
    let name = world.automatic(&[coffee.url("/"), bikes.url("/")]).await;
    world.publish_submitted(name, 1).await;
    world.until(name, "APPLIED").await;
    assert!(has_term(&world, name, "bikes").await);
    let old = world.get(name).await.instructions.unwrap();
    assert!(!old.brief.contains("Not read"), "{}", old.brief);

    mood.store(2, Ordering::SeqCst);
    let asked = coffee.count();
    age(&world).await;
    eventually("it is compiled again", async || coffee.count() > asked).await;
    compiler.stop().await;
    assert_eq!(world.get(name).await.instructions.unwrap(), old);

    // A page that is gone permanently is dropped, and the customer is informed.
    mood.store(4, Ordering::SeqCst);
    age(&world).await;
    world
        .database
        .run("UPDATE managers SET recompile_after = NULL")
        .await;
    let compiler = world.compiler();
    eventually("it is compiled without the page", async || {
        !has_term(&world, name, "bikes").await
    })
    .await;
    compiler.stop().await;
    let brief = world.get(name).await.instructions.unwrap().brief;
    let told = format!("Not read: {}: answered 404.", bikes.url("/"));
    assert!(brief.ends_with(&told), "{brief}");
}

#[tokio::test]
async fn recompiled_manager_keeps_its_feeds_when_new_ones_exceed_the_quota() {
    let mut world = World::new().await;
    let (server, mood) = customer().await;
    let name = at_work(&world, &server).await;
    // The page leads to two feeds.
    let one = "WITH w AS (DELETE FROM feed_watchers WHERE feed <> 'hackernews:newest') \
               UPDATE managers SET instructions = jsonb_set(instructions, '{feeds}', '[\"hackernews:newest\"]')";
    assert_eq!(world.database.run(one).await, 1);
    world.config.quotas.feeds = 1;
    mood.store(1, Ordering::SeqCst);
    age(&world).await;
    let compiler = world.compiler();
    until_bikes(&world, name).await;
    compiler.stop().await;
    let manager = world.get(name).await;
    let instructions = manager.instructions.unwrap();
    assert_eq!(instructions.feeds, ["hackernews:newest".parse().unwrap()]);
    assert_eq!(world.database.count("feed_watchers").await, 1);
    let told = "Its feeds were kept, because the account would have 2 feeds, and its quota is 1.";
    assert!(instructions.brief.ends_with(told), "{}", instructions.brief);
}
