//! Clients that would keep the gateway from ending.

use std::time::{Duration, Instant};

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
