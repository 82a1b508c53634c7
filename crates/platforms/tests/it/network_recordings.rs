//! Recorded responses of network platforms and feeds: no post in them may be lost.
//!
//! A few are in this repository; a larger collection is read if `EARSHOT_PLATFORM_RECORDINGS` names its folder.

use std::{path::PathBuf, sync::Arc};

use platforms::{Adapter, PollLimits, Source, facebook::Facebook, feed::Feeds, linkedin::LinkedIn};
use serde_json::Value;
use url::Url;

use crate::linkedin::Answer;

fn folder() -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "a test has no configuration")]
    let folder = std::env::var_os("EARSHOT_PLATFORM_RECORDINGS").map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: EARSHOT_PLATFORM_RECORDINGS names no folder of recordings");
    }
    folder
}

fn fixture(path: &str) -> Vec<u8> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    std::fs::read(root.join(path)).unwrap()
}

fn linkedin(body: &[u8]) -> LinkedIn {
    let base: Url = "https://api.linkedin.example".parse().unwrap();
    let fetch = Arc::new(Answer(200, body.to_vec()));
    LinkedIn::new(base, "t".into(), "202610".into(), fetch)
}

/// Removes the address of a next page, which would return the same posts again.
fn facebook(body: &[u8]) -> Facebook {
    let mut page: Value = serde_json::from_slice(body).unwrap();
    page["paging"]["next"] = Value::Null;
    let base: Url = "https://graph.facebook.example".parse().unwrap();
    let fetch = Arc::new(Answer(200, page.to_string().into_bytes()));
    Facebook::new("facebook".into(), base, "t".into(), None, fetch)
}

async fn given(adapter: &dyn Adapter, what: &str) -> Vec<domain::Post> {
    let polled = adapter.poll(what, None, &PollLimits::default()).await;
    polled.unwrap().posts
}

#[tokio::test]
async fn examples_become_posts_with_every_field() {
    let posts = given(
        &linkedin(&fixture("linkedin/posts_by_author.json")),
        "organization/2414183",
    )
    .await;
    assert_eq!(posts.len(), 2);
    assert_eq!(posts[1].id, "urn:li:share:6856123456789012480");
    let text = "We are hiring a platform engineer. Rust and Postgres, remote in the EU. #rust";
    assert_eq!(posts[1].text.as_deref(), Some(text));
    assert_eq!(posts[1].time.to_string(), "2025-10-09T09:09:28.743000Z");
    let notes = "Release notes for October\n\nRelease notes\n\nWhat changed";
    assert_eq!(posts[0].text.as_deref(), Some(notes));

    let posts = given(
        &facebook(&fixture("facebook/page_feed.json")),
        "page/123456789012345",
    )
    .await;
    assert_eq!(posts.len(), 2);
    assert_eq!(posts[1].id, "facebook:123456789012345_987654321098765");
    assert_eq!(posts[1].time.to_string(), "2025-11-18T10:30:00.000000Z");
    assert_eq!(posts[1].user.name, "Example Page");
    assert_eq!(
        posts[0].text.as_deref(),
        Some("Example Page updated their cover photo.")
    );
    assert_eq!(posts[0].user.id, "123456789012345");
}

#[tokio::test]
async fn recorded_network_posts_are_read_without_loss() {
    let Some(folder) = folder() else { return };
    for (platform, list, what) in [
        ("linkedin", "elements", "organization/2414183"),
        ("facebook", "data", "page/123456789012345"),
    ] {
        for path in files(&folder.join(platform)) {
            let body = std::fs::read(&path).unwrap();
            let parsed: Value = serde_json::from_slice(&body).unwrap();
            // Recordings that are not a list of items are skipped.
            let Some(items) = parsed[list].as_array() else {
                continue;
            };
            let posts = match platform {
                "linkedin" => given(&linkedin(&body), what).await,
                _ => given(&facebook(&body), what).await,
            };
            println!(
                "{}: {} items, {} posts",
                path.display(),
                items.len(),
                posts.len()
            );
            assert_eq!(posts.len(), items.len(), "{}", path.display());
        }
    }
}

fn files(folder: &std::path::Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths
}

/// Number of entries in a document, counted by their tags only.
fn entries(body: &[u8]) -> usize {
    let text = String::from_utf8_lossy(body);
    if let Ok(json) = serde_json::from_str::<Value>(&text) {
        return json["items"].as_array().map_or(0, Vec::len);
    }
    let count = |name: &str| {
        let opening = format!("<{name}");
        let opened = text.match_indices(&opening);
        let ends = |at: usize| text.as_bytes().get(at + name.len() + 1).copied();
        opened
            .filter(|(at, _)| matches!(ends(*at), Some(b'>' | b' ' | b'\n' | b'\r' | b'\t')))
            .count()
    };
    count("item") + count("entry")
}

#[tokio::test]
async fn recorded_feeds_are_read_without_loss() {
    let Some(folder) = folder() else { return };
    let (mut documents, mut posts, mut lost) = (0, 0, Vec::new());
    for path in files(&folder.join("feeds")) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name == "index.json" {
            continue;
        }
        let body = std::fs::read(&path).unwrap();
        let there = entries(&body);
        let feeds = Feeds::new(
            "blogs".into(),
            Source::Network,
            None,
            Arc::new(Answer(200, body)),
        );
        let polled = feeds
            .poll("https://example.org/feed", None, &PollLimits::default())
            .await;
        let given = polled.map(|polled| polled.posts.len());
        println!("{name}: {there} entries, {given:?} posts");
        documents += 1;
        posts += given.as_ref().copied().unwrap_or(0);
        // A document that is malformed on purpose may be unreadable, but reading it must end.
        if !name.starts_with("hostile_") && given.ok() != Some(there) {
            lost.push(name);
        }
    }
    println!("{documents} documents, {posts} posts, not all of: {lost:?}");
    // The first is cut off in the middle of a tag, the others are not feeds.
    let known = [
        "rss_2.0_invalid_1.xml",
        "xml_iso8859.xml",
        "xml_sample_1.xml",
        "xml_sample_2.xml",
    ];
    assert_eq!(lost, known);
}
