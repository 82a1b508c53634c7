//! Posts with many matches are matched in parts, and take a place while the matches are held.

use std::{pin::pin, sync::Arc};

use domain::{FeedName, Post};
use outbound::large;
use test_support::{Fixture, TestDatabase, post};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{FEED, all_of, apply, new_of, watching, with_long_terms};
use crate::{
    Deciders,
    find::{LONG, MANY, MOST},
    plans::Plans,
};

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
