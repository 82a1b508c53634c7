//! The adapter against the tests of Python's feedparser, the reference of tolerant reading.
//!
//! `fixtures/feedparser.jsonl` has a document per line with what feedparser finds in it. Where more than one answer is
//! right, a field is a list.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{Post, Timestamp};
use platforms::{Adapter as _, Fetched, PollError, PollLimits, Polled, Source, feed::FeedAdapter};
use serde::Deserialize;
use url::Url;

use crate::platform::answering;

#[derive(Deserialize)]
pub(crate) struct Document {
    pub(crate) path: String,
    content_type: String,
    url: Url,
    pub(crate) body: String,
    #[serde(default)]
    feed_title: Vec<String>,
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    title: Vec<String>,
    link: Option<Url>,
    time: Option<Timestamp>,
    #[serde(default)]
    text: Vec<String>,
    #[serde(default)]
    author: Vec<String>,
}

pub(crate) fn documents() -> Vec<Document> {
    let lines = include_str!("../fixtures/feedparser.jsonl").lines();
    let documents = lines.map(|line| serde_json::from_str(line).unwrap());
    documents.collect()
}

impl Document {
    pub(crate) async fn poll(&self, body: Vec<u8>) -> Result<Polled, PollError> {
        let answer = Fetched {
            status: 200,
            headers: vec![("content-type".into(), self.content_type.clone())],
            body,
            final_url: self.url.clone(),
        };
        let feeds = FeedAdapter::new(
            "boards".into(),
            Source::Forum,
            None,
            answering(move |_| answer.clone()),
        );
        let limits = PollLimits::default();
        feeds.poll("https://lab.example/feed", None, &limits).await
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        STANDARD.decode(&self.body).unwrap()
    }
}

/// Equal and expected values of each field.
#[derive(Default)]
struct Score(BTreeMap<&'static str, (usize, usize)>);

impl Score {
    fn add(&mut self, field: &'static str, path: &str, expected: &str, is_equal: bool) {
        if !is_equal {
            println!("{path}: {field} is not {expected}");
        }
        let (equal, all) = self.0.entry(field).or_default();
        *equal += usize::from(is_equal);
        *all += 1;
    }

    fn entry(&mut self, path: &str, expected: &Entry, found: Option<&Post>) {
        let mut texts = |field, expected: &[String], found: Option<&str>| {
            let Some(first) = expected.first() else {
                return;
            };
            let found = found.map(words);
            let is_equal = expected.iter().any(|one| Some(words(one)) == found);
            self.add(field, path, first, is_equal);
        };
        texts(
            "title",
            &expected.title,
            found.and_then(|post| post.title.as_deref()),
        );
        texts(
            "text",
            &expected.text,
            found.and_then(|post| post.text.as_deref()),
        );
        texts(
            "author",
            &expected.author,
            found.map(|post| post.user.name.as_str()),
        );
        if let Some(link) = &expected.link {
            let is_equal = found.is_some_and(|post| post.url == link.as_str());
            self.add("link", path, link.as_str(), is_equal);
        }
        if let Some(time) = expected.time {
            let seconds = |time: Timestamp| time.micros() / 1_000_000;
            let is_equal = found.is_some_and(|post| seconds(post.time) == seconds(time));
            self.add("time", path, &time.to_string(), is_equal);
        }
    }
}

/// Words without the marks of lists, zero-width and control characters.
fn words(text: &str) -> String {
    let visible = |c: &char| {
        let is_invisible = matches!(
            c,
            '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{FEFF}' | '\u{AD}'
        );
        !is_invisible && (!c.is_control() || c.is_whitespace())
    };
    // HTML 4 and HTML 5 name different characters lang and rang.
    let text: String = text.chars().filter(visible).collect();
    let text = text
        .replace(['\u{2329}', '\u{3008}'], "\u{27E8}")
        .replace(['\u{232A}', '\u{3009}'], "\u{27E9}");
    let words = text
        .split_whitespace()
        .filter(|word| !matches!(*word, "-" | "*" | "•"));
    words.collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn fields_are_those_that_feedparser_finds() {
    let mut score = Score::default();
    for document in documents() {
        let posts = match document.poll(document.bytes()).await {
            Ok(polled) => polled.posts,
            Err(error) => {
                println!("{}: {error}", document.path);
                Vec::new()
            }
        };
        score.add("read", &document.path, "an entry", !posts.is_empty());
        if let Some(title) = document.feed_title.first() {
            let found = posts
                .first()
                .and_then(|post| Some(words(&post.subforum.as_ref()?.name)));
            let is_equal = document
                .feed_title
                .iter()
                .any(|one| Some(words(one)) == found);
            score.add("feed title", &document.path, title, is_equal);
        }
        // Posts come oldest first.
        let mut rest: Vec<&Post> = posts.iter().collect();
        for entry in &document.entries {
            let fits = |post: &&Post| {
                let mut one = Score::default();
                one.entry("", entry, Some(post));
                one.0.values().all(|(equal, all)| equal == all)
            };
            let place = rest.iter().position(fits);
            let found = place
                .or((!rest.is_empty()).then_some(0))
                .map(|place| rest.remove(place));
            score.entry(&document.path, entry, found);
        }
    }
    println!("{:?}", score.0);
    for (field, least) in [
        ("read", 0.99),
        ("title", 0.97),
        ("link", 0.97),
        ("time", 0.97),
        ("text", 0.95),
        ("author", 0.90),
        ("feed title", 0.97),
    ] {
        let (equal, all) = score.0[field];
        let share = equal as f64 / all as f64;
        assert!(share >= least, "{field}: {equal} of {all}");
    }
}

/// Flips bits, cuts pieces out, repeats pieces and splices documents; the seed is fixed.
#[tokio::test]
async fn no_mutation_panics_or_multiplies_entries() {
    const MUTATIONS: usize = 2_000;
    let documents = documents();
    let mut random = Random(7);
    for number in 0..MUTATIONS {
        let document = &documents[random.below(documents.len())];
        let mut body = document.bytes();
        for _ in 0..=random.below(5) {
            mutate(
                &mut body,
                &documents[random.below(documents.len())],
                &mut random,
            );
        }
        match document.poll(body.clone()).await {
            Ok(polled) => assert!(polled.posts.len() <= body.len(), "{number}"),
            Err(PollError::Malformed(reason)) => {
                assert!(
                    !reason.contains("panic"),
                    "{number} of {}: {reason}",
                    document.path
                );
            }
            Err(other) => panic!("{number} of {}: {other}", document.path),
        }
    }
}

fn mutate(body: &mut Vec<u8>, other: &Document, random: &mut Random) {
    const TOKENS: [&str; 12] = [
        "<![CDATA[",
        "]]>",
        "<!--",
        "-->",
        "<?",
        "?>",
        "&",
        "&#0;",
        "<item>",
        "</",
        "\u{FEFF}",
        "（",
    ];
    let at = random.below(body.len() + 1);
    let length = random.below(64).min(body.len() - at);
    match random.below(6) {
        0 if at < body.len() => body[at] ^= 1 << random.below(8),
        1 => drop(body.drain(at..at + length)),
        2 => {
            let piece = body[at..at + length].to_vec();
            body.splice(at..at, piece);
        }
        3 => body.truncate(at),
        4 => {
            let token = TOKENS[random.below(TOKENS.len())];
            body.splice(at..at, token.bytes());
        }
        _ => {
            let other = other.bytes();
            let start = random.below(other.len());
            body.splice(at..at, other[start..].iter().copied());
        }
    }
}

/// A small generator of numbers (splitmix64), the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % limit.max(1) as u64).unwrap()
    }
}
