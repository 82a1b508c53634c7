//! The account of a platform's ids names posts that the platform hides for a while or for ever.

use std::{collections::BTreeSet, time::Duration};

use domain::Timestamp;
use platform_simulator::NewPost;
use test_support::eventually;

use crate::{
    days::today,
    support::{HACKER_NEWS, World, post},
};

const COMMENTS: &str = "hackernews:comments";
/// Number of ids, and the number of ids after which the pattern of hidden and deleted ones repeats.
const IDS: usize = 4_000;
const HIDDEN: usize = 1_000;

impl World {
    /// Makes the ids in the cursors old enough to be checked, for feeds that no replica is polling.
    async fn age_ids(&self) {
        self.database
            .run(
                "UPDATE feeds SET cursor = jsonb_set(jsonb_set(jsonb_set(cursor, \
                     '{ids,newestTime}', to_jsonb(to_char((now() - interval '11 minutes') AT TIME ZONE 'UTC', \
                         'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'))), \
                     '{ids,fromTime}', to_jsonb('2020-01-01T00:00:00.000000Z'::text)), \
                     '{ids,missing}', (SELECT coalesce(jsonb_agg(one || \
                         '{\"next\": \"2020-01-01T00:00:00.000000Z\"}'), '[]') \
                         FROM jsonb_array_elements(cursor #> '{ids,missing}') AS one)) \
                 WHERE cursor ? 'ids' AND leased_by IS NULL",
            )
            .await;
    }

    /// Waits until the ids of both feeds are checked up to `last`.
    async fn until_checked(&self, last: u64) {
        eventually("all ids are checked", async || {
            self.age_ids().await;
            tokio::time::sleep(Duration::from_millis(400)).await;
            let behind = format!("feeds WHERE (cursor #>> '{{ids,upTo}}')::bigint < {last}");
            self.database.count(&behind).await == 0
        })
        .await;
    }

    async fn missing(&self, feed: &str) -> BTreeSet<u64> {
        let from = format!("feed_missing_ids WHERE feed = '{feed}'");
        let ids = self.database.texts("id::text", &from).await;
        ids.iter().map(|id| id.parse().unwrap()).collect()
    }
}

#[tokio::test]
async fn id_account_names_exactly_the_hidden_posts() {
    let mut world = World::new().await;
    world.config.scanner.backfill = Duration::from_hours(24);
    let stories = world.manager("kettle", &[HACKER_NEWS]).await;
    world.manager("teapot", &[COMMENTS]).await;
    let story = world
        .platforms
        .publish(vec![post("hackernews", "The first kettle")])[0]
        .id;
    let replica = world.ready_scanner().await;
    world.until_scanned(stories, 1).await;
    eventually("the account of both feeds has begun", async || {
        world.database.count("feeds WHERE cursor ? 'ids'").await == 2
    })
    .await;
    replica.stop().await;

    // One in ten is a story. Some of both kinds are hidden: some for ever, and some for a while.
    let is_hidden = |n: usize| n % HIDDEN == 500 || n % HIDDEN == 507;
    let is_shown_later = |n: usize| is_hidden(n) && (n < IDS / 2) == n.is_multiple_of(10);
    let now = Timestamp::now();
    let posts = (0..IDS).map(|n| NewPost {
        time: Some(now.minus(Duration::from_millis(900_000 + (IDS - n) as u64 * 200))),
        parent: (!n.is_multiple_of(10)).then_some(story),
        text: Some(format!("About the kettle {n}")),
        hidden: is_hidden(n),
        ..post("hackernews", &format!("Kettle {n}"))
    });
    let published = world.platforms.publish(posts.collect());
    let ids = |wanted: &dyn Fn(usize) -> bool| -> BTreeSet<u64> {
        let published = published.iter().enumerate();
        published
            .filter(|(n, _)| wanted(*n))
            .map(|(_, one)| one.id)
            .collect()
    };
    let hidden = ids(&is_hidden);
    let deleted = ids(&|n| n % HIDDEN == 700);
    for id in &deleted {
        world.platforms.delete(*id);
    }
    let last = published.last().unwrap().id;
    let replicas = [world.ready_scanner().await, world.ready_scanner().await];
    world.until_checked(last).await;
    for feed in [HACKER_NEWS, COMMENTS] {
        assert_eq!(world.missing(feed).await, hidden, "{feed}");
    }

    // Half of them appear.
    let shown = ids(&is_shown_later);
    for id in &shown {
        world.platforms.reveal(*id);
    }
    let for_ever: BTreeSet<u64> = hidden.difference(&shown).copied().collect();
    for feed in [HACKER_NEWS, COMMENTS] {
        eventually("what appeared is explained", async || {
            world.age_ids().await;
            tokio::time::sleep(Duration::from_millis(400)).await;
            world.missing(feed).await == for_ever
        })
        .await;
    }
    let hidden_stories = for_ever
        .iter()
        .filter(|id| (*id - published[0].id).is_multiple_of(10));
    let read = 1 + IDS / 10 - deleted.len() - hidden_stories.count();
    assert_eq!(world.scanned(stories).await.len(), read);
    for replica in replicas {
        replica.stop().await;
    }

    for feed in [HACKER_NEWS, COMMENTS] {
        let day = today(&world, feed).await.unwrap();
        let ids = day.ids.unwrap();
        assert_eq!(ids.up_to, last, "{feed}");
        let all = ids.read + ids.other + ids.gone + ids.not_visible;
        assert_eq!(all, IDS as u64, "{feed}: each id counts once: {ids:?}");
        assert_eq!(ids.not_visible, for_ever.len() as u64, "{feed}");
        assert_eq!(ids.gone, deleted.len() as u64, "{feed}");
    }
    // One search for each range returns the items of the other feed, so that few are requested one by one.
    let asked = world.platforms.requests("/hackernews/v0/item/");
    assert!(asked < IDS as u64, "{asked} items");
}
