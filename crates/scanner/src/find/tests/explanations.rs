//! Explanations take bounded memory, and only matches that may be stored have one.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use domain::{FeedName, Id};
use test_support::{Fixture, TestDatabase, post};
use tokio_util::sync::CancellationToken;

use super::{FEED, Matches, all_of, watching, with_long_terms};
use crate::{
    Deciders,
    find::{EXPLAINED, MOST, TOGETHER, bytes_of},
    plans::Plans,
};

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
