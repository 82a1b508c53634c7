//! Recorded responses of Bluesky, Mastodon and X: each post in them comes out complete.
//!
//! The expected posts are counted independently of the adapters: any object, at any depth, that has the fields
//! of a post.

use std::{path::Path, sync::Arc, time::Duration};

use domain::{Post, PostType};
use futures::{SinkExt, StreamExt};
use platforms::{
    Adapter, Fetch, PollLimits, Unlimited,
    bluesky::{Jetstream, Waits},
    mastodon::Mastodon,
    x::X,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_tungstenite::{accept_async, tungstenite::Message};
use url::Url;

use crate::platform::{answer, answering};

/// Answers addresses that contain the given part; 404 for the rest.
fn recorded(part: &'static str, body: Vec<u8>) -> Arc<dyn Fetch> {
    answering(move |url| {
        let is_part = url.path().contains(part);
        let is_newer = url.query().is_some_and(|query| query.contains("min_id"));
        if is_part && !is_newer {
            answer(200, url, body.clone())
        } else {
            answer(404, url, "")
        }
    })
}

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

/// Checks the guarantees for every receiver.
fn check(post: &Post) {
    let json = serde_json::to_string(post).unwrap();
    assert!(!json.contains("\\u00"), "a control character in {json}");
    assert!(
        post.post_type == PostType::MicroblogTweet
            && post.title.is_none()
            && post.subforum.is_none()
    );
    assert!(
        post.text
            .as_deref()
            .is_some_and(|text| !text.trim().is_empty()),
        "{json}"
    );
    assert!(
        !post.user.id.is_empty() && !post.user.name.is_empty(),
        "{json}"
    );
    assert!(post.id.contains("://"), "{json}");
    for address in [&post.url, &post.user.url] {
        assert!(matches!(url(address).scheme(), "http" | "https"), "{json}");
    }
}

/// Reads messages as a Jetstream host sends them.
async fn jetstream(messages: Vec<Message>) -> Vec<Post> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = url(&format!("ws://{}", listener.local_addr().unwrap()));
    let server = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = accept_async(stream).await.unwrap();
        for message in messages {
            let _ = socket.send(message).await;
        }
        while socket.next().await.is_some() {}
    });
    let adapter = Jetstream::new(vec![host], None, Arc::new(Unlimited)).with_waits(Waits {
        gather: Duration::from_millis(300),
        idle: Duration::from_millis(300),
        silence: Duration::from_secs(5),
        ..Waits::default()
    });
    let polled = adapter
        .poll("jetstream", None, &PollLimits::default())
        .await;
    server.abort();
    // An error means that every message was unreadable, so there are no posts.
    polled.map(|polled| polled.posts).unwrap_or_default()
}

async fn mastodon(body: Vec<u8>) -> Vec<Post> {
    let adapter = Mastodon::new(
        url("https://mastodon.example"),
        None,
        recorded("timelines", body),
    );
    let polled = adapter.poll("public", None, &PollLimits::default()).await;
    polled.map(|polled| polled.posts).unwrap_or_default()
}

async fn x(body: Vec<u8>) -> Vec<Post> {
    let fetch = recorded("search/recent", body);
    let adapter = X::new(
        url("https://x.example"),
        "t".into(),
        fetch,
        Arc::new(Unlimited),
    );
    let polled = adapter.poll("search/a", None, &PollLimits::default()).await;
    polled.map(|polled| polled.posts).unwrap_or_default()
}

/// Collects all objects at any depth that match `is`.
fn collect<'a>(value: &'a Value, is: &dyn Fn(&Value) -> bool, found: &mut Vec<&'a Value>) {
    if is(value) {
        found.push(value);
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, is, found)),
        Value::Object(fields) => fields.values().for_each(|item| collect(item, is, found)),
        _ => {}
    }
}

/// The JSON documents of a file: one, one per line, or the data of an event stream.
fn documents(body: &[u8]) -> Vec<Value> {
    if let Ok(document) = serde_json::from_slice(body) {
        return vec![document];
    }
    let text = String::from_utf8_lossy(body);
    let lines = text
        .lines()
        .map(|line| line.strip_prefix("data: ").unwrap_or(line));
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(Value::is_object)
        .collect()
}

/// The letters of a text without separators.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// The counts for a recording: `(given, expected)`.
type Given = (usize, usize);

async fn bluesky_file(body: &[u8]) -> Given {
    let documents = documents(body);
    let is_record =
        |value: &Value| value["$type"] == "app.bsky.feed.post" && value.get("text").is_some();
    let mut messages = Vec::new();
    let mut expected = Vec::new();
    for (number, document) in documents.iter().enumerate() {
        if document.get("time_us").is_some() {
            messages.push(Message::text(document.to_string()));
            let is_post = document["commit"]["collection"] == "app.bsky.feed.post"
                && document["commit"]["operation"] == "create";
            if is_post {
                expected.push(document["commit"]["record"].clone());
            }
            continue;
        }
        let mut records = Vec::new();
        collect(document, &is_record, &mut records);
        for (place, record) in records.into_iter().enumerate() {
            // The event as the stream would send it.
            let event = json!({
                "did": "did:plc:recorded", "time_us": 1_783_175_888_085_434_i64, "kind": "commit",
                "commit": {"operation": "create", "collection": "app.bsky.feed.post",
                           "rkey": format!("k{number}x{place}"), "record": record},
            });
            messages.push(Message::text(event.to_string()));
            expected.push(record.clone());
        }
    }
    if documents.is_empty() {
        messages.push(Message::binary(body.to_vec()));
    }
    let has_text = |record: &Value| {
        let embeds = record["embed"]["external"].is_object()
            || record["embed"]["media"]["external"].is_object();
        !record["text"]
            .as_str()
            .unwrap_or_default()
            .trim()
            .is_empty()
            || embeds
    };
    expected.retain(has_text);
    let posts = jetstream(messages).await;
    posts.iter().for_each(check);
    for record in &expected {
        // Links are expanded in the text, so texts with links are not compared.
        let plain = record["facets"].as_array().is_none_or(Vec::is_empty);
        let wanted = letters(record["text"].as_str().unwrap_or_default());
        let found = posts
            .iter()
            .any(|post| letters(post.text.as_deref().unwrap()).contains(&wanted));
        assert!(found || !plain, "lost {record}");
        let card = record["embed"]["external"]["title"]
            .as_str()
            .unwrap_or_default();
        let card = letters(card);
        assert!(
            posts
                .iter()
                .any(|post| letters(post.text.as_deref().unwrap()).contains(&card)),
            "lost {record}"
        );
    }
    (posts.len(), expected.len())
}

async fn mastodon_file(body: &[u8]) -> Given {
    let is_status = |value: &Value| {
        ["id", "content", "account", "created_at", "visibility"]
            .iter()
            .all(|name| value.get(name).is_some())
    };
    let documents = documents(body);
    let mut statuses = Vec::new();
    documents
        .iter()
        .for_each(|document| collect(document, &is_status, &mut statuses));
    statuses.sort_by_key(|status| status["id"].to_string());
    statuses.dedup_by_key(|status| status["id"].to_string());
    let page = Value::Array(statuses.iter().map(|status| (*status).clone()).collect());
    let posts = mastodon(page.to_string().into_bytes()).await;
    posts.iter().for_each(check);
    // The unmodified messages must not break anything either.
    mastodon(body.to_vec()).await;
    statuses.retain(|status| {
        let text = status["content"]
            .as_str()
            .unwrap_or_default()
            .contains(char::is_alphanumeric);
        status["reblog"].is_null()
            && matches!(status["visibility"].as_str(), Some("public" | "unlisted"))
            && status["account"]["indexable"] != false
            && status["account"]["noindex"] != true
            && text
    });
    for status in &statuses {
        let warning = status["spoiler_text"].as_str().unwrap_or_default();
        let content = platforms::text::from_html(status["content"].as_str().unwrap_or_default());
        let whole = |post: &&Post| {
            let text = post.text.as_deref().unwrap();
            text.contains(&content)
                && text.starts_with(warning)
                && post.id == status["uri"].as_str().unwrap()
        };
        assert!(posts.iter().any(|post| whole(&post)), "lost {status}");
    }
    (posts.len(), statuses.len())
}

async fn x_file(body: &[u8]) -> Given {
    let posts = x(body.to_vec()).await;
    posts.iter().for_each(check);
    let document = documents(body).into_iter().next().unwrap_or_default();
    let tweets = document["data"].as_array().cloned().unwrap_or_default();
    let tweets: Vec<Value> = tweets
        .into_iter()
        .filter(|tweet| tweet["text"].is_string())
        .collect();
    for tweet in &tweets {
        let text = tweet["text"].as_str().unwrap();
        let text = text
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&");
        let found = posts
            .iter()
            .any(|post| letters(post.text.as_deref().unwrap()) == letters(&text));
        assert!(found, "lost {tweet}");
    }
    (posts.len(), tweets.len())
}

async fn file(platform: &str, path: &Path) -> Given {
    let body = std::fs::read(path).unwrap();
    match platform {
        "bluesky" => bluesky_file(&body).await,
        "mastodon" => mastodon_file(&body).await,
        _ => x_file(&body).await,
    }
}

#[tokio::test]
async fn microblog_recordings_are_read_without_loss() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let (mut files, mut posts) = (0, 0);
    for platform in ["bluesky", "mastodon", "x"] {
        for entry in std::fs::read_dir(folder.join(platform)).unwrap() {
            let path = entry.unwrap().path();
            let (given, expected) = file(platform, &path).await;
            assert_eq!(given, expected, "{}", path.display());
            files += 1;
            posts += given;
        }
    }
    assert!(files >= 8 && posts >= 15, "{files} {posts}");
}

#[tokio::test]
async fn instance_lists_its_timelines_and_hashtags() {
    let fixture = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures/mastodon")
            .join(name);
        std::fs::read(path).unwrap()
    };
    let at =
        |part, body| Mastodon::new(url("https://mastodon.example"), None, recorded(part, body));
    let closed = at("instance", fixture("instance_live_feeds_disabled.json"));
    let error = closed
        .poll("public", None, &PollLimits::default())
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("turned off the public timeline"),
        "{error}"
    );
    let found = at("search", fixture("search_1.json"))
        .communities("a", 10)
        .await
        .unwrap();
    println!("{found:?}");
}
