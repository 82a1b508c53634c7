//! The reader, with the files that ship, decides on each match once. The LLM filter asks within the deadline of a poll.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use diesel_async::SimpleAsyncConnection;
use domain::{
    FeedName, Focus, Id, Instructions, ManagerName, Post, Timestamp,
    instructions::{Sells, Term},
    scan::ReaderOutcome,
};
use runtime::config::{Judge, PostReader};
use serde_json::json;
use store::{plans as plan_store, roles::Service, scans::NewScan};
use test_support::{Answer, Fixture, TIMEOUT, TestDatabase, TestServer, post};
use tokio_util::sync::CancellationToken;

use super::{FEED, Matches, all_of, new_of, replace, watching};
use crate::{Deciders, metrics, plans::Plans};

const TITLES: [&str; 2] = [
    "Which espresso machine should I buy for my kitchen?",
    "Can you recommend an espresso machine for a small kitchen?",
];
/// No post reaches it, so the index finds candidates alone.
const OUT_OF_REACH: f64 = 1.1;

fn selling(offer: &str, threshold: f64) -> Instructions {
    let include = ["espresso", "kitchen", "grinder", "barista"].map(|text| Term {
        text: text.to_owned(),
        weight: 1.0,
    });
    let sells = Sells {
        summary: String::new(),
        offers: vec![offer.to_owned()],
    };
    Instructions {
        focus: Some(Focus::Sales),
        threshold: Some(threshold),
        include: include.into(),
        sells: sells.or_none(),
        ..watching("espresso", FEED)
    }
}

fn posts() -> Vec<Post> {
    let titles = TITLES.iter().enumerate();
    titles
        .map(|(at, title)| post(&format!("forum:{at}"), title))
        .collect()
}

struct Shop {
    database: TestDatabase,
    plans: Plans,
    managers: Vec<ManagerName>,
    feed: FeedName,
}

impl Shop {
    async fn open(managers: usize, threshold: f64) -> Self {
        Self::with(managers, threshold, TIMEOUT).await
    }

    async fn with(managers: usize, threshold: f64, max_wait: Duration) -> Self {
        let reader = PostReader {
            folder: concat!(env!("CARGO_MANIFEST_DIR"), "/../reader/model").to_owned(),
            max_wait,
            max_per_manager_per_day: 1_000,
        };
        Self::with_models(managers, threshold, Some(reader), None).await
    }

    async fn with_models(
        managers: usize,
        threshold: f64,
        reader: Option<PostReader>,
        judge: Option<Judge>,
    ) -> Self {
        let database = TestDatabase::create().await;
        let mut conn = database.connect().await;
        let fixture = Fixture::create(&mut conn).await;
        let mut config = test_support::config(&database, Service::Scanner);
        config.scanner.reader = reader;
        config.scanner.judge = judge;
        let plans = Plans::new(database.pool(), Deciders::new(&config.scanner).await);
        let instructions = selling("espresso machine", threshold);
        let mut names = Vec::new();
        for _ in 0..managers {
            names.push(fixture.applied_manager(&mut conn, &instructions, &[]).await);
        }
        assert!(plans.load(&CancellationToken::new()).await);
        Self {
            database,
            plans,
            managers: names,
            feed: FEED.parse().unwrap(),
        }
    }
}

/// Posts that were read, and matches that were judged.
fn work() -> (u64, u64) {
    let judged = metrics::READER.with_label_values(&["judged"]);
    (metrics::READER_DURATION.get_sample_count(), judged.get())
}

fn scores(scans: &[NewScan<'_>]) -> Vec<(ManagerName, f64)> {
    let scans = scans.iter();
    scans
        .map(|scan| (scan.manager, scan.matched.score))
        .collect()
}

#[tokio::test]
async fn a_match_is_decided_once_until_its_plan_changes() {
    let shop = Shop::open(2, 0.0).await;
    let (plans, feed, posts) = (&shop.plans, &shop.feed, posts());
    let mut all = all_of(plans, feed, &posts).await;
    let before = work();
    let more = || {
        let now = work();
        (now.0 - before.0, now.1 - before.1)
    };
    let first = scores(&all.decide_few(plans, &all.picks()).await);
    assert_eq!((first.len(), more()), (4, (2, 4)));
    // A repeated transaction, and a repeated poll.
    assert_eq!(scores(&all.decide_few(plans, &all.picks()).await), first);
    let again = all_of(plans, feed, &posts).await;
    assert_eq!(
        scores(&again.decide_few(plans, &again.picks()).await),
        first
    );
    assert_eq!(more(), (2, 4));

    let changed = shop.managers[1];
    replace(&shop.database, changed, &selling("coffee grinder", 0.0)).await;
    plans.refresh().await.unwrap();
    all.update(plans).await;
    let second = scores(&all.decide_few(plans, &all.picks()).await);
    assert_eq!(more(), (4, 6));
    for (one, other) in first.iter().zip(&second) {
        assert_eq!(one.0, other.0);
        assert_eq!(one == other, one.0 != changed, "{first:?} {second:?}");
    }
}

#[tokio::test]
async fn a_post_is_read_once_for_matches_that_are_stored_by_manager() {
    let shop = Shop::open(3, 0.0).await;
    let (plans, posts) = (&shop.plans, posts());
    let all = all_of(plans, &shop.feed, &posts).await;
    let before = work().0;
    all.decide_all(plans, 100, || false).await;
    let mut picks = all.picks();
    picks.sort_by_key(|pick| pick.manager);
    for pick in &picks {
        assert_eq!(all.decide_few(plans, &[*pick]).await.len(), 1);
    }
    assert_eq!((picks.len(), work().0 - before), (6, 2));
}

/// A lock holds up what the new customer sells until the time is over.
#[tokio::test]
async fn known_customers_do_not_wait_for_new_ones() {
    let shop = Shop::with(2, 0.0, Duration::from_secs(10)).await;
    let (plans, posts, known) = (&shop.plans, posts(), shop.managers[1]);
    let only_known = |manager: &ManagerName, _: &Post| *manager == known;
    let (index, account) = (plans.index(), Id::NIL);
    let first = Matches::of(plans, index, account, &shop.feed, &posts[..1], only_known);
    first.await.decide_all(plans, 100, || false).await;

    let mut other = shop.database.connect().await;
    let lock = "BEGIN; LOCK TABLE managers IN ACCESS EXCLUSIVE MODE";
    other.batch_execute(lock).await.unwrap();
    let all = all_of(plans, &shop.feed, &posts[1..]).await;
    let before = work().0;
    let scans = all.decide_few(plans, &all.picks()).await;
    let outcomes: HashMap<_, _> = scans
        .iter()
        .map(|scan| (scan.manager, scan.matched.reader))
        .collect();
    assert_eq!(outcomes[&known], Some(ReaderOutcome::Judged));
    assert_eq!(outcomes[&shop.managers[0]], Some(ReaderOutcome::Busy));
    assert_eq!(work().0 - before, 1);
}

/// For a transaction, which must not wait for a reading.
#[tokio::test]
async fn matches_are_decided_by_what_is_known_if_nothing_may_be_asked() {
    let shop = Shop::open(1, 0.0).await;
    let (plans, posts) = (&shop.plans, posts());
    let first = all_of(plans, &shop.feed, &posts[..1]).await;
    first.decide_all(plans, 100, || false).await;
    let before = work();
    let all = all_of(plans, &shop.feed, &posts).await.without_asking();
    let scans = all.decide_few(plans, &all.picks()).await;
    let outcomes: Vec<_> = scans.iter().map(|scan| scan.matched.reader).collect();
    let expected = [ReaderOutcome::Judged, ReaderOutcome::Busy].map(Some);
    assert_eq!((outcomes.as_slice(), work()), (&expected[..], before));
}

#[tokio::test]
async fn rejected_matches_are_not_given_again() {
    let shop = Shop::open(1, OUT_OF_REACH).await;
    let (plans, posts) = (&shop.plans, posts());
    let all = all_of(plans, &shop.feed, &posts).await;
    assert_eq!(all.picks().len(), 2);
    assert!(all.decide_few(plans, &all.picks()).await.is_empty());
    assert!(all.picks().is_empty());
}

/// The quota refuses them, and they are decided when there is room again.
#[tokio::test]
async fn candidates_of_a_spent_quota_are_kept_unread() {
    let shop = Shop::open(1, OUT_OF_REACH).await;
    let (plans, mut posts) = (&shop.plans, posts());
    // Nothing will read it, so its score decides.
    posts[1].text = posts[1].title.take();
    let used_up: HashSet<Id> = shop.managers.iter().map(|one| one.namespace).collect();
    let (index, used_up) = (plans.index(), Arc::new(used_up));
    let all = Matches::of_first(
        plans,
        index,
        Id::NIL,
        &shop.feed,
        &posts,
        |_, _| true,
        used_up,
    );
    let all = all.await;
    let before = work();
    let kept = all.decide_few(plans, &all.picks()).await;
    let kept: Vec<_> = kept.iter().map(|scan| scan.post.id.as_str()).collect();
    assert_eq!((kept, work()), (vec!["forum:0"], before));
    // It is not decided: there may be room again.
    assert_eq!(all.picks().len(), 1);
}

#[tokio::test]
async fn a_post_without_title_keeps_its_score() {
    let shop = Shop::open(1, 0.0).await;
    let (plans, mut posts) = (&shop.plans, posts());
    posts.truncate(1);
    posts[0].text = posts[0].title.take();
    let all = all_of(plans, &shop.feed, &posts).await;
    let scans = all.decide_few(plans, &all.picks()).await;
    let outcomes: Vec<_> = scans.iter().map(|scan| scan.matched.reader).collect();
    assert_eq!(outcomes, [Some(ReaderOutcome::Untitled)]);
}

/// Its lowered threshold found more than it may have.
#[tokio::test]
async fn matches_of_a_manager_that_is_gone_are_rejected() {
    let shop = Shop::open(1, OUT_OF_REACH).await;
    let (plans, posts) = (&shop.plans, posts());
    let all = all_of(plans, &shop.feed, &posts).await;
    assert_eq!(all.picks().len(), 2);
    shop.database
        .run("UPDATE managers SET enable = false")
        .await;
    let mut conn = shop.database.connect().await;
    let (quotas, now) = (&test_support::QUOTAS, Timestamp::now());
    plan_store::record_change(&mut conn, shop.managers[0], &[], quotas, now)
        .await
        .unwrap();
    plans.refresh().await.unwrap();
    assert!(all.decide_few(plans, &all.picks()).await.is_empty());
}

/// Blocks of a poll share the deadline, so that they do not wait for the model one after another.
#[tokio::test]
async fn questions_of_a_poll_have_one_deadline() {
    let no = json!({"choices": [{"message": {"content": r#"{"relevant": false}"#}}]});
    let endpoint = TestServer::start(move |_, _| Answer::page(&no.to_string())).await;
    let judge = Judge {
        base_url: endpoint.url("/v1").parse().unwrap(),
        model: "m".to_owned(),
        api_key: None,
        timeout: TIMEOUT,
        max_tokens: 100,
        candidate_percent: 33,
        max_per_minute: 1_000,
        max_per_manager_per_day: 1_000,
        max_open: 4,
    };
    let shop = Shop::with_models(1, 0.0, None, Some(judge)).await;
    let (plans, posts) = (&shop.plans, posts());
    let poll = new_of(plans, &shop.feed, &posts).await;
    let picks = poll.picks();
    assert_eq!(picks.len(), 2);
    assert!(poll.decide_few(plans, &picks[..1]).await.is_empty());
    assert_eq!(endpoint.count(), 1);

    tokio::time::pause();
    tokio::time::advance(TIMEOUT).await;
    tokio::time::resume();
    let scans = poll.decide_few(plans, &picks[1..]).await;
    let judged: Vec<_> = scans.iter().map(|scan| scan.matched.judged).collect();
    assert_eq!((judged, endpoint.count()), (vec![false], 1));

    // The next poll has another deadline.
    let next = new_of(plans, &shop.feed, &posts).await;
    assert!(next.decide_few(plans, &picks[1..]).await.is_empty());
    assert_eq!(endpoint.count(), 2);
}
