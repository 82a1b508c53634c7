//! Guarantees for posts and cursors from a platform.

use domain::{Post, PostType};
use platforms::{Cursor, Polled};
use url::Url;

/// The store keeps each as JSON in one row.
const MAX_POST_BYTES: usize = 600_000;
const MAX_CURSOR_BYTES: usize = 1_000_000;

/// # Panics
/// If a post breaks the API's guarantees, or the cursor cannot be stored and read again.
pub fn hold_for(polled: &Polled, max_posts: usize) {
    assert!(polled.posts.len() <= max_posts, "more posts than asked for");
    for post in &polled.posts {
        hold_for_post(post);
    }
    for id in &polled.deleted {
        assert!(storable(id), "{id:?}");
    }
    let json = polled.cursor.to_json();
    let text = json.to_string();
    assert!(
        text.len() < MAX_CURSOR_BYTES,
        "a cursor of {} bytes",
        text.len()
    );
    // PostgreSQL does not accept this character, not even in `jsonb`.
    assert!(!has_null(&json), "{text}");
    let again = Cursor::from_json(&json).map(|cursor| cursor.to_json());
    assert_eq!(
        again,
        Some(json),
        "the cursor is different when it is read back"
    );
}

/// # Panics
/// If the post breaks the API's guarantees.
pub fn hold_for_post(post: &Post) {
    let bytes = serde_json::to_string(post).map_or(usize::MAX, |json| json.len());
    assert!(bytes < MAX_POST_BYTES, "a post of {bytes} bytes");
    let subforum = post.subforum.as_ref();
    let texts = [
        &post.id,
        &post.url,
        &post.user.id,
        &post.user.name,
        &post.user.url,
    ]
    .into_iter()
    .chain(&post.title)
    .chain(&post.text)
    .chain(subforum.iter().flat_map(|it| [&it.id, &it.name, &it.url]));
    for text in texts {
        assert!(storable(text), "{text:?} in {post:?}");
    }
    assert!(!post.id.is_empty(), "{post:?}");
    assert!(
        !post.user.id.is_empty() && !post.user.name.is_empty(),
        "{post:?}"
    );
    for address in [&post.url, &post.user.url] {
        let scheme = Url::parse(address).map(|url| url.scheme().to_owned());
        assert!(
            matches!(scheme.as_deref(), Ok("http" | "https")),
            "{post:?}"
        );
    }
    assert_ne!(post.text.as_deref(), Some(""), "{post:?}");
    match post.post_type {
        PostType::ForumLink => {
            let titled = post.title.as_ref().is_some_and(|title| !title.is_empty());
            assert!(titled && subforum.is_some(), "{post:?}");
        }
        PostType::MicroblogTweet => {
            assert!(post.text.is_some() && post.title.is_none(), "{post:?}");
        }
        PostType::ForumComment | PostType::NetworkPost => assert!(post.text.is_some(), "{post:?}"),
    }
}

/// Line breaks and tabs are the only allowed control characters in texts.
fn storable(text: &str) -> bool {
    !text
        .chars()
        .any(|c| c.is_control() && c != '\n' && c != '\t')
}

fn has_null(json: &serde_json::Value) -> bool {
    match json {
        serde_json::Value::String(text) => text.contains('\0'),
        serde_json::Value::Array(items) => items.iter().any(has_null),
        serde_json::Value::Object(map) => map
            .iter()
            .any(|(key, value)| key.contains('\0') || has_null(value)),
        _ => false,
    }
}
