//! Bluesky's stream on replicas that start and stop: it is leased like a feed, and read by one replica at a time.

use std::collections::BTreeSet;

use domain::ManagerName;
use platform_simulator::{BLUESKY, NewPost};
use test_support::{Replica, eventually};
use uuid::Uuid;

use crate::support::World;

const STREAM: &str = "bluesky:jetstream";

/// Posts that come one by one, numbered.
struct Posts<'a> {
    world: &'a World,
    manager: ManagerName,
    count: usize,
}

impl Posts<'_> {
    fn publish(&mut self) {
        let title = format!("Kettle {}", self.count);
        self.world.platforms.publish(vec![NewPost {
            platform: BLUESKY.to_owned(),
            title,
            author: format!("author{}", self.count % 7),
            ..NewPost::default()
        }]);
        self.count += 1;
    }

    /// Publishes posts until `more` of them have been scanned.
    async fn flow(&mut self, more: usize) {
        let before = self.scanned().await.len();
        let mut published = 0;
        eventually("the stream is read on", async || {
            for _ in 0..3 {
                self.publish();
            }
            published += 1;
            published % 8 == 0 && self.scanned().await.len() >= before + more
        })
        .await;
    }

    async fn scanned(&self) -> Vec<String> {
        self.world.scanned_texts(self.manager).await
    }

    /// All of them were scanned, and none twice.
    async fn all_are_scanned_once(&self) {
        eventually("all are scanned", async || {
            self.scanned().await.len() >= self.count
        })
        .await;
        let found = self.scanned().await;
        assert_eq!(found.len(), self.count, "a Scan was made twice");
        let expected: BTreeSet<String> = (0..self.count).map(|n| format!("Kettle {n}")).collect();
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
        let stored = self.world.database.count("posts").await;
        assert_eq!(usize::try_from(stored).unwrap(), self.count, "stored twice");
        assert_eq!(self.world.feed(STREAM, "gap_count").await, "0");
    }
}

async fn holder(world: &World) -> Uuid {
    let mut holder = String::new();
    eventually("the stream is leased", async || {
        holder = world.feed(STREAM, "coalesce(leased_by::text, '')").await;
        !holder.is_empty()
    })
    .await;
    holder.parse().unwrap()
}

async fn world_with_a_stream() -> (World, ManagerName) {
    let mut world = World::new().await;
    world.add_stream();
    world.log_leases().await;
    let manager = world.manager("kettle", &[STREAM]).await;
    (world, manager)
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_moves_to_another_replica_without_lost_or_repeated_posts() {
    let (world, manager) = world_with_a_stream().await;
    let mut replicas: Vec<Replica> = Vec::new();
    for _ in 0..3 {
        replicas.push(world.ready_scanner().await);
    }
    let mut posts = Posts {
        world: &world,
        manager,
        count: 0,
    };
    let mut killed = BTreeSet::new();
    posts.flow(20).await;
    for _ in 0..2 {
        let reading = holder(&world).await;
        let at = replicas
            .iter()
            .position(|one| one.backbone.replica == reading);
        // In the middle of the stream: posts that it has read but not stored are lost with it.
        replicas.remove(at.unwrap()).kill();
        killed.insert(reading);
        replicas.push(world.ready_scanner().await);
        posts.flow(20).await;
    }
    posts.all_are_scanned_once().await;
    assert_eq!(world.taken_over(&killed).await, 2);
    assert_eq!(world.platforms.most_streams(), 1, "two read at once");
    // One connection per replica that read the stream; the others never connected.
    let asked = world.platforms.requests("/bluesky/subscribe");
    assert_eq!(asked, 3, "{asked} connections");
    for replica in replicas {
        replica.stop().await;
    }
}

/// The lag of the stream, as this process exports it.
fn lag() -> f64 {
    let families = prometheus::gather();
    let text = prometheus::TextEncoder::new().encode_to_string(&families);
    let text = text.unwrap();
    let series = r#"earshot_stream_lag_seconds{platform="bluesky"} "#;
    let line = text.lines().find_map(|line| line.strip_prefix(series));
    line.unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_is_handed_over_at_shutdown_and_resumed_after_a_break() {
    let (world, manager) = world_with_a_stream().await;
    let first = world.ready_scanner().await;
    let mut posts = Posts {
        world: &world,
        manager,
        count: 0,
    };
    posts.flow(20).await;
    assert!(lag() > 0.0);
    world.platforms.cut_streams(None);
    posts.flow(20).await;
    let second = world.ready_scanner().await;
    assert_eq!(holder(&world).await, first.backbone.replica);
    first.stop().await;
    posts.flow(20).await;
    assert_eq!(holder(&world).await, second.backbone.replica);
    // No Manager watches it any more, so no replica reads it.
    posts.all_are_scanned_once().await;
    world.disable(manager).await;
    eventually("the stream is left", async || {
        world
            .database
            .count("feeds WHERE leased_by IS NOT NULL")
            .await
            == 0
    })
    .await;
    eventually("no lag is left", async || lag() == 0.0).await;
    assert_eq!(world.taken_over(&BTreeSet::new()).await, 0);
    second.stop().await;
}
