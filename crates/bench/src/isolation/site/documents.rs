//! Documents that cost much to parse, to match, to store or to send.
//!
//! | Path | |
//! |---|---|
//! | `/items/<count>-<n>` | a feed of empty items, compressed to a few kilobytes |
//! | `/matching/<count>-<n>.xml` | new posts in each answer, each with all of [`terms`] |
//! | `/large/<count>-<n>.xml` | posts that are as large as posts can be |
//! | `/changing/<count>-<n>.xml` | new posts of 5 KB in each answer, which no Manager matches |
//! | `/page/<count>-<n>` | a page of so many paragraphs of 5 KB |

use std::{
    collections::HashMap,
    io::Write,
    sync::{
        LazyLock, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::Result;
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};

use super::{
    HOSTILE_WORD,
    feeds::{feed, ok},
};

/// Letters with four bytes in UTF-8.
const LETTERS: std::ops::RangeInclusive<char> = '𐌰'..='𐍉';
/// Terms of a Manager.
const TERMS: usize = 500;
/// Words of a term, of one letter each: a term has 97 characters of the 100 that it may have.
const WORDS: usize = 49;
/// Characters of the largest post.
const LARGE: usize = 40_000;

/// Returns the whole response of such a path.
pub(super) fn of(path: &str) -> Option<Result<Bytes>> {
    let (kind, name) = path.trim_start_matches('/').split_once('/')?;
    let count: usize = name.split('-').next()?.parse().ok()?;
    let text = match kind {
        "items" => return Some(items(count)),
        "matching" => feed(new_names(count), &words().join(" ")),
        "large" => {
            let letters: String = LETTERS.cycle().take(LARGE - 10).collect();
            let names = (0..count).map(|item| format!("{name} {item}"));
            feed(names, &format!("{HOSTILE_WORD} {letters}"))
        }
        "changing" => feed(new_names(count), &paragraph()),
        "page" => ok(&format!("<p>{}</p>", paragraph()).repeat(count)).replace("rss+xml", "html"),
        _ => return None,
    };
    Some(Ok(text.into()))
}

/// Different terms, all in each post of `/matching`.
pub(in super::super) fn terms() -> Vec<String> {
    let words = words();
    words.windows(WORDS).map(|term| term.join(" ")).collect()
}

/// The largest number of muted words that a Manager can have.
pub(in super::super) fn muted_words() -> impl Iterator<Item = String> {
    (0..200).map(|number| {
        let words = LETTERS.cycle().skip(number % 26).step_by(1 + number / 26);
        let words: Vec<String> = words.take(50).map(String::from).collect();
        words.join(" ")
    })
}

fn words() -> Vec<String> {
    let letters: Vec<char> = LETTERS.collect();
    let mut state = 1_u32;
    let words = (0..TERMS + WORDS - 1).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        letters[(state >> 16) as usize % letters.len()].to_string()
    });
    words.collect()
}

fn new_names(count: usize) -> impl Iterator<Item = String> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    (0..count).map(|_| format!("new {}", NEXT.fetch_add(1, Ordering::Relaxed)))
}

fn paragraph() -> String {
    "Words about nothing that anyone looks for. ".repeat(110)
}

/// Compresses a feed of so many items once: it costs the site more than its readers.
fn items(count: usize) -> Result<Bytes> {
    static COMPRESSED: LazyLock<Mutex<HashMap<usize, Bytes>>> = LazyLock::new(Mutex::default);
    let mut compressed = COMPRESSED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(response) = compressed.get(&count) {
        return Ok(response.clone());
    }
    let response = empty_items(count)?;
    compressed.insert(count, response.clone());
    Ok(response)
}

fn empty_items(count: usize) -> Result<Bytes> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    write!(
        gzip,
        "<rss version=\"2.0\"><channel>{}</channel></rss>",
        "<item/>".repeat(count)
    )?;
    let body = gzip.finish()?;
    let mut response = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/rss+xml\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    response.extend(body);
    Ok(response.into())
}
