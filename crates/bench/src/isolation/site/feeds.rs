//! Feeds of short posts, as whole responses.

use std::{
    fmt::Write,
    sync::atomic::{AtomicU64, Ordering},
};

use domain::Timestamp;

use super::HOSTILE_WORD;

/// Names of new posts.
pub(super) fn noise(feed: &str) -> impl Iterator<Item = String> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    (0..10).map(move |_| {
        let item = NEXT.fetch_add(1, Ordering::Relaxed);
        format!("{feed} {item}")
    })
}

pub(super) fn rss(names: impl Iterator<Item = String>) -> String {
    let text = format!("Much about a {HOSTILE_WORD} of words, and little else. ").repeat(20);
    feed(names, &text)
}

pub(super) fn feed(names: impl Iterator<Item = String>, text: &str) -> String {
    let time = Timestamp::now().to_chrono().to_rfc2822();
    let mut items = String::new();
    for name in names {
        let id = name.replace(' ', "-");
        // Writing to a String cannot fail.
        let _ = write!(
            items,
            "<item><guid isPermaLink=\"false\">{id}</guid><title>{name}</title><description>{text}</description>\
             <link>https://blog.example/{id}</link><pubDate>{time}</pubDate></item>"
        );
    }
    ok(&format!(
        "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>a blog</title>{items}</channel></rss>"
    ))
}

pub(super) fn ok(body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/rss+xml\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}
