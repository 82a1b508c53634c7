//! The gateway's shutdown: clients that move to another replica, and clients that would delay it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use test_support::eventually;
use tokio::{io::AsyncWriteExt, time::sleep};

use crate::{
    app::TestApp,
    hostile::{raw_post, read_answer},
};

/// Waits until the only request is admitted, and its body is read.
async fn admitted(app: &TestApp) {
    eventually("the request is admitted", async || {
        let used = "api_keys WHERE last_use_time IS NOT NULL";
        app.database.count(used).await == 1
    })
    .await;
}

#[tokio::test]
async fn stalled_body_is_refused_at_shutdown() {
    // Otherwise it would wait for the body.
    let mut app =
        TestApp::start_with(|config| config.gateway.body_timeout = Duration::from_hours(1)).await;
    let mut stalled = raw_post(&app, "content-length: 50").await;
    stalled.write_all(b"{\"n").await.unwrap();
    admitted(&app).await;

    app.stop();
    let (status, head, _) = read_answer(&mut stalled).await;
    assert_eq!(status, 503);
    assert!(head.contains("retry-after: 1"), "{head}");
    // Even though the connection stays open.
    app.stopped().await.unwrap();
}

#[tokio::test]
async fn body_that_arrives_during_shutdown_is_accepted() {
    let mut app = TestApp::start().await;
    let mut late = raw_post(&app, "content-length: 16").await;
    late.write_all(b"{\"nickna").await.unwrap();
    admitted(&app).await;
    app.stop();
    sleep(Duration::from_millis(100)).await;
    late.write_all(b"me\":\"x\"}").await.unwrap();
    assert_eq!(read_answer(&mut late).await.0, 201);
    app.stopped().await.unwrap();
}

#[tokio::test]
async fn stop_does_not_wait_for_a_client_that_neither_sends_nor_reads() {
    let mut app = TestApp::start_with(|config| {
        config.ops.grace_period = Duration::from_secs(6);
        config.gateway.body_timeout = Duration::from_hours(1);
        config.gateway.keep_alive = Duration::from_hours(1);
    })
    .await;
    let mut stalled = raw_post(&app, "content-length: 50").await;
    stalled.write_all(b"{\"n").await.unwrap();
    admitted(&app).await;

    app.stop();
    app.stopped().await.unwrap();
}

/// Acts like the connection pool of a load balancer: connections stay open, requests follow each other without a
/// pause, and the replica still gets requests for a while after its stop signal.
#[tokio::test(flavor = "multi_thread")]
async fn no_request_of_a_busy_pool_fails_while_the_gateway_drains() {
    const CLIENTS: usize = 8;
    let mut app = TestApp::start_with(|config| {
        config.gateway.drain_delay = Duration::from_secs(6);
    })
    .await;
    let acme = app.account("acme").await;
    let (leave, answered) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    // Answers that told each client to close its connection.
    let closing: Arc<[AtomicUsize; CLIENTS]> = Arc::default();
    let pool: Vec<_> = (0..CLIENTS)
        .map(|nth| {
            let (acme, leave, answered) = (acme.clone(), Arc::clone(&leave), Arc::clone(&answered));
            let closing = Arc::clone(&closing);
            tokio::spawn(async move {
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
                    let is_told = close.is_some_and(|value| value == "close");
                    closing[nth].fetch_add(usize::from(is_told), Ordering::Relaxed);
                }
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
    after(4 * CLIENTS).await;
    eventually("each client is told to close its connection", async || {
        closing.iter().all(|told| told.load(Ordering::Relaxed) > 0)
    })
    .await;
    leave.store(true, Ordering::Relaxed);
    for client in pool {
        client.await.unwrap();
    }
    app.stopped().await.unwrap();
}

#[tokio::test]
async fn drain_delay_takes_at_most_half_of_the_grace_period() {
    let grace = Duration::from_secs(8);
    let mut app = TestApp::start_with(|config| {
        config.ops.grace_period = grace;
        config.gateway.drain_delay = Duration::from_hours(1);
    })
    .await;
    let start = Instant::now();
    app.stop();
    app.stopped().await.unwrap();
    assert!(start.elapsed() >= grace / 2, "{:?}", start.elapsed());
}
