//! A database that commits, but whose answer is lost in transit.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use test_support::{Answer, eventually};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::support::{World, after_warming};

/// Proxy between a dispatcher and its database. While `losing`, it forwards a COMMIT, waits until it is done, and
/// closes the connection instead of forwarding the answer.
struct Between {
    losing: Arc<AtomicBool>,
    lost: Arc<AtomicUsize>,
}

impl Between {
    /// Connects the dispatchers of `world` through the proxy.
    async fn start(world: &mut World) -> Self {
        let mut url: url::Url = world.database.url().parse().unwrap();
        let target = (
            url.host_str().unwrap().to_owned(),
            url.port().unwrap_or(5432),
        );
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        url.set_host(Some("127.0.0.1")).unwrap();
        url.set_port(Some(listener.local_addr().unwrap().port()))
            .unwrap();
        world.config.database.url = url.as_str().into();
        let between = Self {
            losing: Arc::default(),
            lost: Arc::default(),
        };
        let (losing, lost) = (Arc::clone(&between.losing), Arc::clone(&between.lost));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect((target.0.as_str(), target.1))
                    .await
                    .unwrap();
                tokio::spawn(pass(client, server, Arc::clone(&losing), Arc::clone(&lost)));
            }
        });
        between
    }
}

async fn pass(
    mut client: TcpStream,
    mut server: TcpStream,
    losing: Arc<AtomicBool>,
    lost: Arc<AtomicUsize>,
) {
    let (mut asked, mut answer) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(length @ 1..) = read else { return };
                let commits = asked[..length].windows(7).any(|text| text == b"COMMIT\0");
                if server.write_all(&asked[..length]).await.is_err() {
                    return;
                }
                if commits && losing.load(Ordering::SeqCst) {
                    let _ = server.read(&mut answer).await;
                    lost.fetch_add(1, Ordering::SeqCst);
                    return;
                }
            }
            read = server.read(&mut answer) => {
                let Ok(length @ 1..) = read else { return };
                if client.write_all(&answer[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}

#[tokio::test]
async fn result_that_is_recorded_twice_counts_once_in_the_breaker() {
    const FAILURES: i64 = 4;
    let mut world = World::new().await;
    world.config.dispatcher.retry_schedule = vec![Duration::from_secs(600); 3];
    let between = Between::start(&mut world).await;
    let (release, held) = watch::channel(false);
    let late = Answer::once(&held, Answer::Status(500));
    let receiver = after_warming(late).await;
    let connection = world.connection(&receiver).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    let warm = world.warm(manager).await;
    for number in 0..FAILURES {
        let title = format!("kettle {number}");
        world.scan_and_tell(manager, &title).await;
    }
    let open = warm + usize::try_from(FAILURES).unwrap();
    eventually("the requests are open", async || receiver.count() == open).await;
    between.losing.store(true, Ordering::SeqCst);
    release.send(true).expect("the receiver waits");
    eventually("something is written", async || {
        world.in_state("RETRYING").await > 0
    })
    .await;
    // The result is written again, because the writer does not know that it was committed. Some of the lost commits
    // are of other work.
    let lost = between.lost.load(Ordering::SeqCst);
    eventually("it is tried again", async || {
        between.lost.load(Ordering::SeqCst) >= lost + 12
    })
    .await;
    between.losing.store(false, Ordering::SeqCst);
    world.until("RETRYING", FAILURES).await;
    // Ends only when everything is written and confirmed.
    replica.stop().await;
    let told = "failure_streak || ' ' || recent_outcomes || ' ' || (open_until IS NULL)";
    let lanes = world.database.texts(told, "connection_lanes").await;
    assert_eq!(lanes, ["4 15 true"], "five failures would have opened it");
    assert_eq!(
        world.database.count("delivery_attempts").await,
        8 + FAILURES
    );
}
