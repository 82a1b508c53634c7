//! Updated matches equal those of a new search, and only changed plans are matched for the update.

use std::{
    collections::{HashMap, HashSet},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use domain::{
    FeedName, Id, Instructions, ManagerName, Post, Reach, Timestamp,
    instructions::Term,
    namespace::NamespaceChange,
    screen::{Mute, MuteType},
};
use outbound::large;
use platform_simulator::{NewPost, Simulator};
use runtime::{
    Config,
    config::{Kind, PlatformConfig},
};
use store::{AsyncPgConnection, backfills, managers, namespaces, plans as plan_store};
use test_support::{Fixture, Replica, TestDatabase, eventually, post};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{EXPLAINED, LONG, MANY, MOST, Matches, TOGETHER, bytes_of};
use crate::{
    Deciders,
    plans::{Plans, is_current},
};

const FEED: &str = "hackernews:newest";

mod decided;

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
async fn no_further_post_is_matched_after_many_matches() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    let fixture = Fixture::create(&mut conn).await;
    let kettle = watching("kettle", FEED);
    for _ in 0..2 {
        fixture.applied_manager(&mut conn, &kettle, &[]).await;
    }
    let plans = Plans::new(database.pool(), Deciders::default());
    assert!(plans.load(&CancellationToken::new()).await);
    let feed: FeedName = FEED.parse().unwrap();
    let posts = vec![post("forum:1", "A kettle"); MOST];
    let part = new_of(&plans, &feed, &posts).await;
    assert_eq!((part.posts().len(), part.picks().len()), (MOST / 2, MOST));
    let rest = new_of(&plans, &feed, &posts[part.posts().len()..]).await;
    assert_eq!(rest.posts().len(), MOST / 2);
    let past = all_of(&plans, &feed, &posts).await;
    assert_eq!((past.posts().len(), past.picks().len()), (MOST / 2, MOST));
}

#[tokio::test]
async fn matches_of_changed_plans_leave_the_last_posts_to_the_next_part() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    let fixture = Fixture::create(&mut conn).await;
    let (kettle, toaster) = (watching("kettle", FEED), watching("toaster", FEED));
    fixture.applied_manager(&mut conn, &kettle, &[]).await;
    let second = fixture.applied_manager(&mut conn, &toaster, &[]).await;
    let third = fixture.applied_manager(&mut conn, &toaster, &[]).await;
    let plans = Plans::new(database.pool(), Deciders::default());
    assert!(plans.load(&CancellationToken::new()).await);
    let feed: FeedName = FEED.parse().unwrap();
    let posts = vec![post("forum:1", "A kettle"); MOST];
    let mut part = all_of(&plans, &feed, &posts).await;
    assert_eq!((part.posts().len(), part.picks().len()), (MOST, MOST));
    apply(&database, second, "kettle").await;
    plans.refresh().await.unwrap();
    assert_eq!(part.update(&plans).await, Some(1));
    assert_eq!((part.posts().len(), part.picks().len()), (MOST / 2, MOST));
    let mut rest = all_of(&plans, &feed, &posts[part.posts().len()..]).await;
    assert_eq!((rest.posts().len(), rest.picks().len()), (MOST / 2, MOST));
    // A restored database has other changes, so all plans are matched again.
    database
        .run("UPDATE plan_changes SET nonce = gen_random_uuid()")
        .await;
    apply(&database, third, "kettle").await;
    plans.refresh().await.unwrap();
    assert_eq!(rest.update(&plans).await, None);
    let posts = MOST / 3;
    assert_eq!((rest.posts().len(), rest.picks().len()), (posts, 3 * posts));
}

#[tokio::test]
async fn poll_with_many_matches_holds_a_place_until_its_work_ends() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    let fixture = Fixture::create(&mut conn).await;
    let (kettle, long) = (watching("kettle", FEED), with_long_terms());
    fixture.applied_manager(&mut conn, &kettle, &[]).await;
    let second = fixture.applied_manager(&mut conn, &long, &[]).await;
    let plans = Plans::new(database.pool(), Deciders::default());
    assert!(plans.load(&CancellationToken::new()).await);
    let feed: FeedName = FEED.parse().unwrap();
    let posts = vec![post("forum:1", "A kettle"); MOST];

    let places = Arc::new(Semaphore::new(1));
    let take = {
        let places = Arc::clone(&places);
        move || Arc::clone(&places).acquire_owned()
    };
    let matched = async |posts: &[Post]| {
        let work = async {
            let count = new_of(&plans, &feed, posts).await.picks().len();
            (count, places.available_permits())
        };
        large::in_turn(take.clone(), work).await
    };
    assert_eq!(matched(&posts[..MANY - 1]).await, (MANY - 1, 1));
    assert_eq!(matched(&posts[..MANY]).await, (MANY, 0));
    assert_eq!(places.available_permits(), 1);
    // Few matches with long explanations.
    let all_terms = long.include.iter().map(|term| term.text.as_str());
    let text = all_terms.collect::<Vec<_>>().join(". ");
    let long_posts = vec![post("forum:1", &text); MANY / 3];
    let (count, free) = matched(&long_posts).await;
    assert_eq!((count < MANY, free), (true, 0), "{LONG} bytes");
    // Posts of the past have few steps at a time.
    let past = async {
        let count = all_of(&plans, &feed, &posts).await.picks().len();
        (count, places.available_permits())
    };
    assert_eq!(large::in_turn(take.clone(), past).await, (MOST, 1));

    // No further post is matched without a place.
    let held = Arc::clone(&places).acquire_owned().await;
    {
        let more = large::in_turn(take.clone(), new_of(&plans, &feed, &posts));
        let mut more = pin!(more);
        assert!(futures::poll!(&mut more).is_pending());
        drop(held);
        assert_eq!(more.await.picks().len(), MOST);
    }

    // Few matches become many when a plan changes.
    let work = async {
        let mut few = new_of(&plans, &feed, &posts[..MANY - 1]).await;
        assert_eq!(places.available_permits(), 1);
        apply(&database, second, "kettle").await;
        plans.refresh().await.unwrap();
        assert_eq!(few.update(&plans).await, Some(1));
        (few.picks().len(), places.available_permits())
    };
    let both = large::in_turn(take, work).await;
    assert_eq!(both, (2 * (MANY - 1), 0));
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

#[tokio::test]
async fn large_explanations_are_stored_in_several_blocks() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    let fixture = Fixture::create(&mut conn).await;
    let many = with_long_terms();
    fixture.applied_manager(&mut conn, &many, &[]).await;
    let plans = Plans::new(database.pool(), Deciders::default());
    assert!(plans.load(&CancellationToken::new()).await);
    let feed: FeedName = FEED.parse().unwrap();
    let terms = many.include.iter().map(|term| term.text.as_str());
    let text = terms.collect::<Vec<_>>().join(". ");
    let posts = vec![post("forum:1", &text); MOST];
    let all = all_of(&plans, &feed, &posts).await;
    let picks = all.picks();
    assert_eq!(picks.len(), posts.len());
    let (mut left, mut blocks, mut stored) = (&picks[..], 0, 0);
    while !left.is_empty() {
        let (scans, covered) = all.explain(&plans, left).await;
        let bytes: usize = scans.iter().map(|scan| bytes_of(&scan.matched)).sum();
        assert!(bytes < EXPLAINED + 100_000, "{bytes}");
        assert_eq!(scans.len(), covered);
        (blocks, stored) = (blocks + 1, stored + covered);
        left = &left[covered..];
    }
    assert_eq!(stored, posts.len());
    assert!(blocks > 1, "they fit into one");
}

#[tokio::test]
async fn explanations_that_are_not_held_equal_the_others() {
    const MANAGERS: usize = 60;
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    let fixture = Fixture::create(&mut conn).await;
    // Each Manager has a term of its own.
    let many = with_long_terms();
    let mut own_terms = HashMap::new();
    for n in 0..MANAGERS {
        let mut one = many.clone();
        let own = format!("saucepan{n}");
        one.include[0].text.clone_from(&own);
        let manager = fixture.applied_manager(&mut conn, &one, &[]).await;
        own_terms.insert(manager, own);
    }
    let plans = Plans::new(database.pool(), Deciders::default());
    assert!(plans.load(&CancellationToken::new()).await);
    let feed: FeedName = FEED.parse().unwrap();
    let terms = many.include.iter().map(|term| &term.text);
    let text: Vec<&str> = { terms.chain(own_terms.values()) }
        .map(String::as_str)
        .collect();
    let text = text.join(". ");
    let posts = [post("forum:1", &text)];
    let all = all_of(&plans, &feed, &posts).await;
    let held = all.found.iter().filter(|found| found.matched.is_some());
    assert!((1..MANAGERS - 2 * TOGETHER).contains(&held.count()));
    let scans = all.decide_few(&plans, &all.picks()).await;
    assert_eq!(scans.len(), MANAGERS);
    let mut managers: Vec<_> = scans.iter().map(|scan| scan.manager).collect();
    assert!(managers.is_sorted());
    managers.dedup();
    assert_eq!(managers.len(), MANAGERS);
    for scan in &scans {
        let terms = &scan.matched.terms;
        let is_own = |term: &&String| term.starts_with("saucepan");
        let own: Vec<_> = terms.iter().filter(is_own).collect();
        assert_eq!(own, [&own_terms[&scan.manager]]);
        assert_eq!(
            (terms.len(), scan.matched.spans.is_empty()),
            (many.include.len(), false)
        );
    }
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

#[tokio::test]
async fn matches_of_accounts_without_scans_left_are_not_explained() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    let fixture = Fixture::create(&mut conn).await;
    let globex = fixture.beside(&mut conn, "globex").await;
    let kettle = watching("kettle", FEED);
    for account in [&fixture, &globex] {
        account.applied_manager(&mut conn, &kettle, &[]).await;
    }
    let plans = Plans::new(database.pool(), Deciders::default());
    assert!(plans.load(&CancellationToken::new()).await);
    let feed: FeedName = FEED.parse().unwrap();
    let posts = [post("forum:1", "A kettle")];
    let used_up = Arc::new(HashSet::from([fixture.namespace]));
    let mut all = Matches::of_first(
        &plans,
        plans.index(),
        Id::NIL,
        &feed,
        &posts,
        |_, _| true,
        used_up,
    )
    .await;
    let terms = async |all: &Matches<'_, _>, namespace| {
        let scans = all.decide_few(&plans, &all.picks()).await;
        assert_eq!(scans.len(), 2);
        let own = scans
            .into_iter()
            .find(|scan| scan.manager.namespace == namespace);
        let matched = own.unwrap().matched;
        assert!(matched.score > 0.0);
        matched.terms
    };
    assert!(terms(&all, fixture.namespace).await.is_empty());
    assert_eq!(terms(&all, globex.namespace).await, ["kettle"]);
    // The quota is used up between two blocks.
    all.set_used_up(Arc::new(HashSet::from([globex.namespace])));
    assert!(terms(&all, globex.namespace).await.is_empty());
    assert_eq!(terms(&all, fixture.namespace).await, ["kettle"]);
}

/// Configuration of a scanner that polls the simulated Hacker News.
fn polling(database: &TestDatabase, platforms: &Simulator) -> Config {
    let mut config = test_support::config(database, store::roles::Service::Scanner);
    let settings = platforms.settings().into_iter();
    let hackernews = settings.filter(|settings| settings.name == "hackernews");
    config.platforms = hackernews
        .map(|settings| PlatformConfig {
            kind: Kind::HackerNews,
            source: Kind::HackerNews.source().unwrap(),
            name: settings.name,
            base_url: settings.base_url,
            items_url: settings.items_url,
            poll_interval: Some(Duration::from_millis(200)),
            access: settings.access,
        })
        .collect();
    config
}

fn new_post(title: &str) -> NewPost {
    NewPost {
        platform: "hackernews".to_owned(),
        title: title.to_owned(),
        author: "ana".to_owned(),
        ..NewPost::default()
    }
}

#[tokio::test]
async fn refused_post_of_a_poll_in_parts_is_skipped_and_the_others_are_stored_once() {
    const MANAGERS: usize = 30;
    const POSTS: usize = 10;
    let database = TestDatabase::create().await;
    for table in ["posts", "recent_posts"] {
        let function = format!(
            "CREATE FUNCTION refuse_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF to_jsonb(NEW)::text LIKE '%poison%' THEN \
                 RAISE check_violation USING MESSAGE = 'no poison here'; \
             END IF; RETURN NEW; END $$"
        );
        database.run(&function).await;
        let trigger = format!(
            "CREATE TRIGGER refuse BEFORE INSERT ON {table} FOR EACH ROW \
             EXECUTE FUNCTION refuse_{table}()"
        );
        database.run(&trigger).await;
    }
    let platforms = Simulator::start("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut conn = database.connect().await;
    let fixture = Fixture::create(&mut conn).await;
    for _ in 0..MANAGERS {
        let kettle = watching("kettle", FEED);
        fixture.applied_manager(&mut conn, &kettle, &[]).await;
    }
    // The part before the refused post is stored when the database refuses it, and there is one after it.
    assert_eq!(MOST.div_ceil(MANAGERS), 4);
    let posts = (0..POSTS).map(|number| match number {
        5 => new_post("A kettle of poison"),
        _ => new_post(&format!("Kettle {number}")),
    });
    platforms.publish(posts.collect());
    let bus = Arc::new(bus::InProcess::new()) as Arc<dyn bus::Bus>;
    let config = polling(&database, &platforms);
    let replica = Replica::of("scanner", &config, &bus, crate::run);
    let others = i64::try_from(MANAGERS * (POSTS - 1)).unwrap();
    eventually("the others have Scans", async || {
        database.count("scans").await >= others
    })
    .await;
    assert_eq!(database.count("scans").await, others);
    let quarantined = "quarantined_posts WHERE kind = 'REFUSED' AND reason LIKE '%no poison here'";
    assert_eq!(database.count(quarantined).await, 1);
    let counted = "feeds WHERE quarantine_count = 1 AND failure_count = 0 AND gap_count = 0";
    assert_eq!(database.count(counted).await, 1);
    let posts = database.texts("sum(posts)::text", "feed_days").await;
    assert_eq!(posts, [(POSTS - 1).to_string()]);
    replica.stop().await;
}

#[tokio::test]
async fn backfill_in_parts_misses_no_match() {
    const MANAGERS: usize = 30;
    const POSTS: usize = 10;
    let database = TestDatabase::create().await;
    let platforms = Simulator::start("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut conn = database.connect().await;
    let fixture = Fixture::create(&mut conn).await;
    let toaster = watching("toaster", FEED);
    fixture.applied_manager(&mut conn, &toaster, &[]).await;
    // The feed keeps the new ones, and a look-back reads the old ones.
    let old = (0..POSTS as u64).map(|number| NewPost {
        time: Some(Timestamp::now().minus(Duration::from_hours(48 - number))),
        ..new_post(&format!("Old kettle {number}"))
    });
    let new = (0..POSTS).map(|number| new_post(&format!("Kettle {number}")));
    platforms.publish(old.chain(new).collect());
    let bus = Arc::new(bus::InProcess::new()) as Arc<dyn bus::Bus>;
    let config = polling(&database, &platforms);
    let replica = Replica::of("scanner", &config, &bus, crate::run);
    let posts = i64::try_from(POSTS).unwrap();
    eventually("the new ones are kept", async || {
        database.count("recent_posts").await == posts
    })
    .await;
    // One step takes all Managers.
    for statement in [
        "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN NEW.next_time := now() + interval '1 hour'; RETURN NEW; END $$",
        "CREATE TRIGGER hold BEFORE INSERT ON backfills FOR EACH ROW EXECUTE FUNCTION hold()",
    ] {
        database.run(statement).await;
    }
    let start = Timestamp::now().minus(Duration::from_hours(30 * 24));
    let window = config.scanner.backfill;
    for _ in 0..MANAGERS {
        let kettle = watching("kettle", FEED);
        let manager = fixture.applied_manager(&mut conn, &kettle, &[]).await;
        let reach = |_: &FeedName| Reach::Time(Duration::MAX);
        backfills::request(&mut conn, manager, start, false, window, reach)
            .await
            .unwrap();
    }
    const { assert!(MANAGERS * POSTS > 2 * MOST, "they fit into one part") };
    // What is delivered has a pace.
    database.run("DELETE FROM backfills WHERE notify").await;
    let release = "UPDATE backfills SET next_time = NULL";
    assert_eq!(database.run(release).await, MANAGERS);
    eventually("the backfills end", async || {
        database.count("backfills WHERE state <> 'DONE'").await == 0
    })
    .await;
    let all = i64::try_from(MANAGERS * POSTS * 2).unwrap();
    assert_eq!(database.count("scans").await, all);
    replica.stop().await;
}

#[tokio::test]
async fn post_whose_matching_panics_is_quarantined_and_the_others_are_stored() {
    let database = TestDatabase::create().await;
    let platforms = Simulator::start("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut conn = database.connect().await;
    let fixture = Fixture::create(&mut conn).await;
    let config = polling(&database, &platforms);
    let kettle = watching("kettle", FEED);
    let manager = fixture.applied_manager(&mut conn, &kettle, &[]).await;
    let titles = [
        "Kettle 1",
        "A kettle that cannot be matched",
        "Kettle 2",
        "A kettle that cannot be explained",
        "Kettle 3",
    ];
    let publish = |title: &str| {
        platforms.publish(vec![new_post(title)]);
    };
    titles.into_iter().for_each(publish);
    let bus = Arc::new(bus::InProcess::new()) as Arc<dyn bus::Bus>;
    let replica = Replica::of("scanner", &config, &bus, crate::run);
    let scanned = format!("scans WHERE manager_id = '{}'", manager.manager.to_uuid());
    eventually("the others have Scans", async || {
        database.count(&scanned).await == 3
    })
    .await;
    let quarantined =
        "quarantined_posts WHERE kind = 'UNREADABLE' AND reason = 'an internal error'";
    assert_eq!(database.count(quarantined).await, 2);
    // The feed goes on behind them, and counts them once.
    publish("Kettle 4");
    eventually("a later post has one too", async || {
        database.count(&scanned).await == 4
    })
    .await;
    assert_eq!(database.count(quarantined).await, 2);
    let counted = "feeds WHERE quarantine_count = 2 AND failure_count = 0 AND gap_count = 0";
    assert_eq!(database.count(counted).await, 1);
    replica.stop().await;
}

#[tokio::test]
#[should_panic(expected = "as asked")]
async fn a_panic_of_all_of_many_posts_is_not_blamed_on_them() {
    let database = TestDatabase::create().await;
    let plans = Plans::new(database.pool(), Deciders::default());
    let feed: FeedName = FEED.parse().unwrap();
    let posts = vec![post("forum:1", "It cannot be matched"); super::GENERAL];
    all_of(&plans, &feed, &posts).await;
}
