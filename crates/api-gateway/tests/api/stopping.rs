//! The gateway's end: clients that go on elsewhere, and those that would keep it from ending.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{io::AsyncWriteExt, time::sleep};

use crate::{
    app::TestApp,
    hostile::{raw_post, read_answer},
};

#[tokio::test]
async fn whoever_stalls_in_a_body_is_told_to_come_again() {
    let mut app = TestApp::start().await;
    let mut stalled = raw_post(&app, "content-length: 50").await;
    stalled.write_all(b"{\"n").await.unwrap();
    sleep(Duration::from_millis(300)).await;

    let start = Instant::now();
    app.stop();
    let (status, head, _) = read_answer(&mut stalled).await;
    assert_eq!(status, 503);
    assert!(head.contains("retry-after: 1"), "{head}");
    assert!(start.elapsed() < Duration::from_secs(4));
    // Even though the connection stays open.
    app.stopped().await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(11));
}

#[tokio::test]
async fn a_body_that_still_arrives_is_taken() {
    let mut app = TestApp::start().await;
    let mut late = raw_post(&app, "content-length: 16").await;
    late.write_all(b"{\"nickna").await.unwrap();
    sleep(Duration::from_millis(300)).await;
    app.stop();
    sleep(Duration::from_millis(300)).await;
    late.write_all(b"me\":\"x\"}").await.unwrap();
    assert_eq!(read_answer(&mut late).await.0, 201);
    app.stopped().await.unwrap();
}

#[tokio::test]
async fn the_stop_takes_half_the_grace_period_at_most() {
    let grace = Duration::from_secs(2);
    let mut app = TestApp::start_with(|config| config.ops.grace_period = grace).await;
    // Its answer comes in time; then the server would listen for the rest for longer than it has.
    let mut stalled = raw_post(&app, "content-length: 50").await;
    stalled.write_all(b"{\"n").await.unwrap();
    sleep(Duration::from_millis(300)).await;

    let start = Instant::now();
    app.stop();
    app.stopped().await.unwrap();
    assert!(start.elapsed() < grace, "{:?}", start.elapsed());
}

/// Acts as the pool of a load balancer: connections stay open, requests follow each other without a pause, and the
/// replica gets requests for a while after its stop signal.
#[tokio::test(flavor = "multi_thread")]
async fn no_request_of_a_busy_pool_fails_while_the_gateway_drains() {
    const CLIENTS: usize = 8;
    let mut app = TestApp::start_with(|config| {
        config.gateway.drain_delay = Duration::from_secs(2);
    })
    .await;
    let acme = app.account("acme").await;
    let (leave, answered) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let pool: Vec<_> = (0..CLIENTS)
        .map(|nth| {
            let (acme, leave, answered) = (acme.clone(), Arc::clone(&leave), Arc::clone(&answered));
            tokio::spawn(async move {
                let mut closing = 0;
                while !leave.load(Ordering::Relaxed) {
                    let answer = match nth % 2 {
                        0 => acme.get("/v1/namespaces").await,
                        _ => {
                            let body = serde_json::json!({"nickname": "x"});
                            acme.post("/v1/namespaces", &body).await
                        }
                    };
                    assert!(matches!(answer.status, 200 | 201), "{answer:?}");
                    answered.fetch_add(1, Ordering::Relaxed);
                    let close = answer.headers.get("connection");
                    closing += usize::from(close.is_some_and(|value| value == "close"));
                }
                closing
            })
        })
        .collect();
    let after = async |count: usize| {
        let seen = answered.load(Ordering::Relaxed);
        while answered.load(Ordering::Relaxed) < seen + count {
            sleep(Duration::from_millis(5)).await;
        }
    };
    after(4 * CLIENTS).await;
    app.stop();
    sleep(Duration::from_millis(500)).await;
    leave.store(true, Ordering::Relaxed);
    for client in pool {
        let closing = client.await.unwrap();
        assert!(closing > 0, "told to close its connection");
    }
    app.stopped().await.unwrap();
}

#[tokio::test]
async fn the_drain_delay_leaves_half_of_the_grace_period() {
    let grace = Duration::from_secs(2);
    let mut app = TestApp::start_with(|config| {
        config.ops.grace_period = grace;
        config.gateway.drain_delay = Duration::from_secs(60);
    })
    .await;
    let start = Instant::now();
    app.stop();
    app.stopped().await.unwrap();
    assert!(start.elapsed() >= grace / 2, "{:?}", start.elapsed());
    assert!(start.elapsed() < grace, "{:?}", start.elapsed());
}
