//! Recorded responses of network platforms: no post in them may be lost.

use platforms::{Adapter, PollLimits, facebook::Facebook, linkedin::LinkedIn};
use serde_json::Value;
use url::Url;

use crate::platform::always;

fn fixture(path: &str) -> Vec<u8> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    std::fs::read(root.join(path)).unwrap()
}

fn linkedin(body: &[u8]) -> LinkedIn {
    let base: Url = "https://api.linkedin.example".parse().unwrap();
    LinkedIn::new(base, "t".into(), "202610".into(), always(200, body))
}

/// Removes the address of a next page, which would return the same posts again.
fn facebook(body: &[u8]) -> Facebook {
    let mut page: Value = serde_json::from_slice(body).unwrap();
    page["paging"]["next"] = Value::Null;
    let base: Url = "https://graph.facebook.example".parse().unwrap();
    let fetch = always(200, page.to_string());
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
