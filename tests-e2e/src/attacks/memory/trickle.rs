//! Large documents that arrive slowly, so that many of them are in memory at once.

use std::{convert::Infallible, future};

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::Response;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use serde_json::json;
use tokio::sync::watch;

use super::{LETTERS, entry};
use crate::{
    attacks::{
        fleet::Fleet,
        host::{Entry, Host, Reply, Visit, atom},
        stage::{Account, PATIENCE, feed, manual},
    },
    harness::{eventually, server::Body},
};

const FEEDS: usize = 40;
/// Just below the limit of a document.
const BYTES: usize = 5 * 1024 * 1024 - 100_000;
/// Bytes at the end of a document that come late.
const END: usize = 1_000;
const POSTS: usize = 60;
const WORD: &str = "trickle";

/// The ends of all documents come after the victim's post.
pub(super) async fn attack(fleet: &Fleet, attacker: &Account) {
    let (release, released) = watch::channel(false);
    let document = document().await;
    let host = Host::start(move |_: &Visit| Reply::Answer(slow(&document, released.clone()))).await;
    let feeds: Vec<String> = (0..FEEDS)
        .map(|number| feed(&host.url(&format!("/{number}/feed"))))
        .collect();
    let manager = manual(&feeds, WORD, &[]);
    let created = attacker.create_manager(&attacker.namespace, &manager).await;
    attacker.applied(&created, PATIENCE).await;
    eventually("all documents are on their way", PATIENCE, async || {
        let is_read = |number| host.count(&format!("/{number}/")) > 0;
        (0..FEEDS).all(is_read).then_some(())
    })
    .await;
    fleet.victim_gets_a_post().await;
    release.send_replace(true);
    eventually("all documents are read", PATIENCE, async || {
        let caller = attacker.get("/v1/caller").await.json();
        (caller["quotas"]["scansPerDay"]["used"] == json!(FEEDS * POSTS)).then_some(())
    })
    .await;
}

async fn document() -> Bytes {
    let letters: String = LETTERS.cycle().take(BYTES / POSTS / 4).collect();
    let text = format!("{WORD} {letters}");
    let entries: Vec<Entry> = (0..POSTS).map(|number| entry(number, &text)).collect();
    atom("slow", &entries)
        .into_body()
        .collect()
        .await
        .unwrap()
        .to_bytes()
}

fn slow(document: &Bytes, mut released: watch::Receiver<bool>) -> Response<Body> {
    let mut beginning = document.clone();
    let end = beginning.split_off(document.len() - END);
    let end = async move {
        // The sender is dropped at the end of the test.
        let _ = released.wait_for(|released| *released).await;
        end
    };
    let parts = stream::once(future::ready(beginning)).chain(stream::once(end));
    let parts = parts.map(|part| Ok::<_, Infallible>(Frame::data(part)));
    Response::builder()
        .header("content-type", "application/atom+xml")
        .body(BodyExt::boxed(StreamBody::new(parts)))
        .unwrap()
}
