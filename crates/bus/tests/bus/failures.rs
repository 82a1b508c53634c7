//! Lost connections, lost queues and lost brokers.

use std::{net::SocketAddr, sync::Arc};

use bus::{Bus, RabbitMq};
use lapin::options::QueueDeleteOptions;
use test_support::eventually;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::support::{QUEUE, Running, amqp_url, outgoing, rabbitmq_at, start, submitted, topology};

/// Publishes until the event comes: those on the way to a lost connection are lost.
async fn arrives(bus: &RabbitMq, consumer: &mut Running, generation: i64) {
    eventually("an event arrives", async || {
        let _ = bus.publish(&outgoing(submitted(generation))).await;
        let mut came = false;
        while let Some(next) = consumer.now() {
            came |= next == generation;
        }
        came
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_connection_is_reopened() {
    let url = tokio::task::spawn_blocking(amqp_url).await.unwrap();
    let broker: lapin::uri::AMQPUri = url.parse().unwrap();
    let line = Line::to(format!(
        "{}:{}",
        broker.authority.host, broker.authority.port
    ))
    .await;
    let mut through = broker.clone();
    through.authority.host = line.address.ip().to_string();
    through.authority.port = line.address.port();
    let bus = rabbitmq_at(&through.to_string(), &topology());
    let mut consumer = start(Arc::new(bus.clone())).await;
    for generation in 0..4 {
        arrives(&bus, &mut consumer, generation).await;
        line.cut();
    }
    consumer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_queue_is_declared_again() {
    let url = tokio::task::spawn_blocking(amqp_url).await.unwrap();
    let topology = topology();
    let bus = rabbitmq_at(&url, &topology);
    let mut consumer = start(Arc::new(bus.clone())).await;
    arrives(&bus, &mut consumer, 1).await;

    let connection = lapin::Connection::connect(&url, lapin::ConnectionProperties::default())
        .await
        .unwrap();
    let channel = connection.create_channel().await.unwrap();
    let queue = topology.queue_name(QUEUE);
    channel
        .queue_delete(queue.into(), QueueDeleteOptions::default())
        .await
        .unwrap();
    // For at least half a second.
    eventually("the loss shows", async || !consumer.is_subscribed()).await;
    eventually("it is subscribed again", async || consumer.is_subscribed()).await;
    arrives(&bus, &mut consumer, 2).await;
    consumer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_broker_is_used_again() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().to_owned();
    let mut broker =
        tokio::task::spawn_blocking(move || private_servers::RabbitMq::start(&path).unwrap())
            .await
            .unwrap();
    let bus = rabbitmq_at(&broker.amqp_url(), &topology());
    let mut consumer = start(Arc::new(bus.clone())).await;
    arrives(&bus, &mut consumer, 1).await;
    broker.kill();
    eventually("the loss shows", async || !consumer.is_subscribed()).await;
    assert!(bus.publish(&outgoing(submitted(2))).await.is_err());
    let broker = tokio::task::spawn_blocking(move || {
        broker.restart().unwrap();
        broker
    })
    .await
    .unwrap();
    arrives(&bus, &mut consumer, 3).await;
    consumer.stop().await;
    drop(broker);
}

/// A proxy to a broker that can be cut without the broker.
struct Line {
    address: SocketAddr,
    cuts: watch::Sender<()>,
}

impl Line {
    async fn to(broker: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (cuts, cut) = watch::channel(());
        tokio::spawn(async move {
            while let Ok((mut here, _)) = listener.accept().await {
                let broker = broker.clone();
                let mut cut = cut.clone();
                cut.mark_unchanged();
                tokio::spawn(async move {
                    let mut there = TcpStream::connect(broker).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut here, &mut there) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        Self { address, cuts }
    }

    fn cut(&self) {
        self.cuts.send_replace(());
    }
}
