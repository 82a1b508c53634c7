//! Updated matches equal those of a new search, and only changed plans are matched for the update.

use std::sync::Arc;

use domain::{
    FeedName, Id, Instructions, ManagerName, Post, Timestamp,
    instructions::Term,
    namespace::NamespaceChange,
    screen::{Mute, MuteType},
};
use store::{AsyncPgConnection, managers, namespaces, plans as plan_store};
use test_support::{Fixture, TestDatabase, post};
use tokio_util::sync::CancellationToken;

use super::Matches;
use crate::{
    Deciders,
    plans::{Plans, is_current},
};

const FEED: &str = "hackernews:newest";

mod decided;
mod explanations;
mod parts;
mod polls;

/// Panics for a post whose title says so: no real post is known that makes matching panic.
pub(super) fn stumble(post: &Post, step: &str) {
    let title = post.title.as_deref().unwrap_or_default();
    assert!(!title.contains(&format!("cannot be {step}")), "as asked");
}

fn watching(term: &str, feed: &str) -> Instructions {
    Instructions {
        feeds: vec![feed.parse().unwrap()],
        ..test_support::instructions(term)
    }
}

/// Instructions whose matches have large explanations.
fn with_long_terms() -> Instructions {
    let terms = (0..50).map(|n| Term {
        text: format!("kettle{n} with a long handle that stays cold while the water in it boils"),
        weight: 1.0,
    });
    Instructions {
        include: terms.collect(),
        ..watching("kettle", FEED)
    }
}

/// Matches of new posts.
fn new_of<'a>(
    plans: &Plans,
    feed: &'a FeedName,
    posts: &'a [Post],
) -> impl Future<Output = Matches<'a, impl Fn(&ManagerName, &Post) -> bool>> {
    let none = Arc::default();
    Matches::of_first(
        plans,
        plans.index(),
        Id::NIL,
        feed,
        posts,
        |_, _| true,
        none,
    )
}

fn all_of<'a>(
    plans: &Plans,
    feed: &'a FeedName,
    posts: &'a [Post],
) -> impl Future<Output = Matches<'a, impl Fn(&ManagerName, &Post) -> bool>> {
    Matches::of(plans, plans.index(), Id::NIL, feed, posts, |_, _| true)
}

async fn apply(database: &TestDatabase, manager: ManagerName, term: &str) {
    replace(database, manager, &watching(term, FEED)).await;
}

async fn replace(database: &TestDatabase, manager: ManagerName, instructions: &Instructions) {
    let instructions = serde_json::to_string(instructions).unwrap();
    let id = manager.manager.to_uuid();
    let update =
        format!("UPDATE managers SET instructions = '{instructions}'::jsonb WHERE id = '{id}'");
    assert_eq!(database.run(&update).await, 1);
    let mut conn = database.connect().await;
    let feeds = [FEED.parse().unwrap()];
    plan_store::record_change(
        &mut conn,
        manager,
        &feeds,
        &test_support::QUOTAS,
        Timestamp::now(),
    )
    .await
    .unwrap();
}

async fn mute(conn: &mut AsyncPgConnection, fixture: &Fixture, terms: &[&str]) {
    let current = namespaces::lock(conn, fixture.namespace).await;
    let mutes = terms.iter().map(|term| Mute {
        mute_type: MuteType::Term,
        value: (*term).to_owned(),
        expire_time: None,
    });
    let change = NamespaceChange {
        mutes: Some(mutes.collect()),
        ..NamespaceChange::default()
    };
    let current = current.unwrap().unwrap();
    namespaces::update(
        conn,
        current,
        &change,
        &test_support::QUOTAS,
        Timestamp::now(),
    )
    .await
    .unwrap();
}

#[tokio::test]
async fn only_changed_plans_are_matched_again() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    let fixture = Fixture::create(&mut conn).await;
    let kettle = watching("kettle", FEED);
    let first = fixture.applied_manager(&mut conn, &kettle, &[]).await;
    let second = fixture.applied_manager(&mut conn, &kettle, &[]).await;
    let plans = Plans::new(database.pool(), Deciders::default());
    assert!(plans.load(&CancellationToken::new()).await);

    let feed: FeedName = FEED.parse().unwrap();
    let posts: Vec<Post> = ["A kettle", "A loud kettle", "A toaster"]
        .iter()
        .enumerate()
        .map(|(at, title)| post(&format!("forum:{at}"), title))
        .collect();
    let mut all = all_of(&plans, &feed, &posts).await;
    assert_eq!(all.picks().len(), 4);

    let mut update = async |watched: Option<usize>, found: usize| {
        plans.refresh().await.unwrap();
        assert_eq!(all.update(&plans).await, watched);
        let found_again = all.picks();
        assert_eq!(found_again, all_of(&plans, &feed, &posts).await.picks());
        assert_eq!(found_again.len(), found);
    };
    update(Some(0), 4).await;
    let elsewhere = watching("kettle", "lemmy:newest");
    fixture.applied_manager(&mut conn, &elsewhere, &[]).await;
    update(Some(0), 4).await;
    apply(&database, second, "toaster").await;
    update(Some(1), 3).await;
    mute(&mut conn, &fixture, &["loud"]).await;
    update(Some(0), 2).await;
    mute(&mut conn, &fixture, &[]).await;
    update(Some(0), 3).await;
    for manager in [first, second] {
        apply(&database, manager, "loud").await;
    }
    update(Some(2), 2).await;
    // A restored database has other changes, so everything is loaded and matched again.
    database
        .run("UPDATE plan_changes SET nonce = gen_random_uuid()")
        .await;
    apply(&database, first, "kettle").await;
    update(None, 3).await;
}

#[tokio::test]
async fn stored_matches_are_not_given_again() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    let fixture = Fixture::create(&mut conn).await;
    let kettle = watching("kettle", FEED);
    let manager = fixture.applied_manager(&mut conn, &kettle, &[]).await;
    let plans = Plans::new(database.pool(), Deciders::default());
    assert!(plans.load(&CancellationToken::new()).await);
    let feed: FeedName = FEED.parse().unwrap();
    let posts: Vec<Post> = (0..4)
        .map(|at| post(&format!("forum:{at}"), "A kettle or a toaster"))
        .collect();
    let mut all = all_of(&plans, &feed, &posts).await;
    let found = all.picks();
    all.record_stored(&found[..1]);
    all.record_stored(&found[2..3]);
    apply(&database, manager, "toaster").await;
    plans.refresh().await.unwrap();
    assert_eq!(all.update(&plans).await, Some(1));
    let left: Vec<usize> = all.picks().into_iter().map(|pick| pick.at).collect();
    assert_eq!(left, [1, 3]);
    let explained = all.decide_few(&plans, &all.picks()).await;
    let posts = explained.iter().map(|scan| scan.post.id.as_str());
    assert_eq!(posts.collect::<Vec<_>>(), ["forum:1", "forum:3"]);
    assert!(
        explained
            .iter()
            .all(|scan| scan.matched.terms == ["toaster"])
    );
}

#[tokio::test]
async fn only_changes_that_concern_the_feed_require_another_match() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    let fixture = Fixture::create(&mut conn).await;
    let globex = fixture.beside(&mut conn, "globex").await;
    let (feed, lemmy): (FeedName, FeedName) =
        (FEED.parse().unwrap(), "lemmy:newest".parse().unwrap());
    let kettle = watching("kettle", FEED);
    let own = fixture.applied_manager(&mut conn, &kettle, &[]).await;
    let far = watching("kettle", "lemmy:newest");
    let elsewhere = globex.applied_manager(&mut conn, &far, &[]).await;
    let plans = Plans::new(database.pool(), Deciders::default());
    assert!(plans.load(&CancellationToken::new()).await);

    let check = async |expected: bool, what: &str| {
        let mut conn = database.connect().await;
        let is_current = is_current(&mut conn, &plans.index(), &feed).await.unwrap();
        assert_eq!(is_current, expected, "{what}");
        if !expected {
            plans.refresh().await.unwrap();
        }
    };
    let record = async |manager: ManagerName, feeds: &[FeedName]| {
        let mut conn = database.connect().await;
        plan_store::record_change(
            &mut conn,
            manager,
            feeds,
            &test_support::QUOTAS,
            Timestamp::now(),
        )
        .await
        .unwrap();
    };
    let lemmy = [lemmy];
    check(true, "nothing changed").await;
    record(elsewhere, &lemmy).await;
    mute(&mut conn, &globex, &["loud"]).await;
    check(true, "another feed and its mutes").await;
    apply(&database, own, "toaster").await;
    check(false, "a Manager of the feed").await;
    check(true, "the index is up to date").await;
    mute(&mut conn, &fixture, &["loud"]).await;
    check(false, "mutes of its Namespace").await;
    let new = globex.applied_manager(&mut conn, &kettle, &[]).await;
    record(elsewhere, &lemmy).await;
    check(false, "a new Manager").await;
    mute(&mut conn, &globex, &[]).await;
    check(false, "mutes of the new Manager's Namespace").await;
    record(new, &[]).await;
    check(false, "a Manager that no longer watches the feed").await;
    managers::delete(&mut conn, own, Timestamp::now())
        .await
        .unwrap();
    check(false, "a deleted Manager").await;
    for _ in 0..3 {
        record(elsewhere, &lemmy).await;
    }
    check(true, "another feed, several times").await;
    // A restored database has other changes.
    database
        .run("UPDATE plan_changes SET nonce = gen_random_uuid()")
        .await;
    check(false, "a restored database").await;
    let many = "INSERT INTO plan_changes SELECT version + n, gen_random_uuid(), gen_random_uuid(), now() \
                FROM plan_version, generate_series(1, 1001) AS n";
    database.run(many).await;
    database
        .run("UPDATE plan_version SET version = version + 1001")
        .await;
    check(false, "too many changes to compare").await;
}
