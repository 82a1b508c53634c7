//! A RabbitMQ cluster of three nodes: one is killed, then the majority, then all are back.
//!
//! The replicas are spread over the nodes, and those of a dead node reach a living one, as behind a load balancer.

use std::time::{Duration, Instant};

use private_servers::postgres::Options;
use tokio::task::block_in_place;

use super::{
    books,
    fleet::{Fleet, Remote, Servers},
    load::{Load, World},
};
use crate::harness::{WAITING, eventually};

const NODES: usize = 3;
const SECONDS: u64 = 4;
/// Posts per tenth of a second.
const POSTS: u64 = 3;
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) fn servers() -> Servers {
    Servers {
        nodes: NODES,
        ..Options::throwaway().into()
    }
}

pub(super) async fn run(fleet: &Fleet) {
    let length = super::number("EARSHOT_FAULTS_NODE_SECONDS").unwrap_or(SECONDS);
    let length = Duration::from_secs(length);
    spread(fleet, &[0, 1, 2]).await;
    let world = World::new(fleet).await;
    let mut load = Load::new(fleet, &world);
    for living in [&[0, 1, 2][..], &[1, 2], &[2]] {
        println!("nodes {living:?} are running for {length:?}");
        for dead in (0..NODES).filter(|node| !living.contains(node)) {
            block_in_place(|| fleet.node(dead).kill());
        }
        spread(fleet, living).await;
        let until = Instant::now() + length;
        load.keep_publishing(POSTS, || Instant::now() < until).await;
        let published = load.done().posts.len();
        // The work goes on without the nodes that are away.
        eventually("the backlog is delivered", PATIENCE, async || {
            (fleet.query(WAITING) == "0").then_some(())
        })
        .await;
        println!("{published} posts so far, all Scans delivered");
    }
    for dead in [0, 1] {
        block_in_place(|| fleet.node(dead).restart()).unwrap();
    }
    spread(fleet, &[0, 1, 2]).await;
    let until = Instant::now() + length;
    load.keep_publishing(POSTS, || Instant::now() < until).await;
    books::check(fleet, &world, load.done(), Instant::now()).await;
    fleet.terminate();
}

/// Connects each replica to one of the nodes `living`.
async fn spread(fleet: &Fleet, living: &[usize]) {
    for (at, replica) in fleet.replicas().iter().enumerate() {
        let port = fleet.node(living[at % living.len()]).port();
        let way = replica.way(Remote::Broker);
        way.cut();
        way.aim(&format!("127.0.0.1:{port}"));
        way.mend().await;
    }
}
