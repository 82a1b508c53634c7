//! Speed of the feed reader next to `feed-rs`, a strict one; and what damaged and hostile documents cost.
//!
//! A poll includes everything after the request: decoding, parsing, texts and posts. Memory is the growth of the
//! process's resident set during one poll, by the kernel's high-water mark, in addition to the document.

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use platforms::{
    Adapter, Fetch, FetchError, FetchLimits, Fetched, PollError, PollLimits, Source,
    feed::FeedAdapter,
};
use serde::Deserialize;
use url::Url;

use crate::report::{Report, Row};

const MB: f64 = 1_000_000.0;
/// Length of a hostile document, just within what is fetched.
const HOSTILE_BYTES: usize = 5_000_000;
const MOST_TIME: Duration = Duration::from_millis(200);
const MOST_MEMORY: f64 = 32.0;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of damaged documents
    #[arg(long, default_value_t = 20_000)]
    mutations: usize,
    /// Rounds over the documents; the median counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

#[derive(Deserialize)]
struct Line {
    path: String,
    body: String,
}

pub(crate) fn run(options: &Options) -> Result<Report> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(measure(options))
}

async fn measure(options: &Options) -> Result<Report> {
    let lines = include_str!("../../platforms/tests/fixtures/feedparser.jsonl").lines();
    let mut documents = Vec::new();
    for line in lines {
        let line: Line = serde_json::from_str(line)?;
        documents.push((line.path, STANDARD.decode(line.body)?));
    }
    let mut report = Report::new("feeds");
    let ordinary = vec![("ordinary".to_owned(), ordinary())];
    for (what, set) in [
        ("one ordinary feed of 400 items", &ordinary),
        ("tests of feedparser, 800 bytes each", &documents),
    ] {
        let bytes: usize = set.iter().map(|(_, body)| body.len()).sum();
        let speed = |times: &[f64]| {
            let speeds = times.iter().map(|time| bytes as f64 / MB / time);
            let mut speeds: Vec<f64> = speeds.collect();
            speeds.sort_unstable_by(f64::total_cmp);
            let median = speeds[speeds.len() / 2];
            format!(
                "{:.1}, {median:.1}, {:.1} MB/s",
                speeds[0],
                speeds[speeds.len() - 1]
            )
        };
        let (mut polls, mut parses, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..options.rounds.max(1) {
            let begin = Instant::now();
            for (_, body) in set {
                let _ = poll(body).await;
            }
            polls.push(begin.elapsed().as_secs_f64());
            let begin = Instant::now();
            for (_, body) in set {
                let _ = platforms::feed::parse(body, None, &address()?);
            }
            parses.push(begin.elapsed().as_secs_f64());
            let begin = Instant::now();
            for (_, body) in set {
                let _ = feed_rs::parser::parse(&body[..]);
            }
            others.push(begin.elapsed().as_secs_f64());
        }
        let feed_rs = format!("feed-rs, parsing: {}", speed(&others));
        report.row(Row::new(format!("{what}, parsing"), speed(&parses)).reference(feed_rs));
        report.row(Row::new(format!("{what}, whole poll"), speed(&polls)));
    }
    damaged(options.mutations, &documents, &mut report).await;
    hostile(&mut report).await?;
    Ok(report)
}

async fn damaged(count: usize, documents: &[(String, Vec<u8>)], report: &mut Report) {
    let mut random = Random(7);
    let (mut longest, mut read, mut panics) = (Duration::ZERO, 0_usize, 0_usize);
    for _ in 0..count {
        let mut body = documents[random.below(documents.len())].1.clone();
        for _ in 0..=random.below(5) {
            let other = &documents[random.below(documents.len())].1;
            mutate(&mut body, other, &mut random);
        }
        let begin = Instant::now();
        match poll(&body).await {
            Ok(posts) => read += usize::from(posts > 0),
            Err(PollError::Malformed(reason)) => panics += usize::from(reason.contains("panic")),
            Err(_) => {}
        }
        longest = longest.max(begin.elapsed());
    }
    let measured = format!(
        "{:.1} ms, {read} with posts, {panics} panics",
        longest.as_secs_f64() * 1e3
    );
    let met = longest < MOST_TIME && panics == 0;
    let row = Row::new(format!("{count} damaged documents: longest poll"), measured);
    report.row(row.goal("< 200 ms, 0 panics", met));
}

async fn hostile(report: &mut Report) -> Result<()> {
    let fill = |begin: &str, piece: &str| {
        let count = (HOSTILE_BYTES - begin.len()) / piece.len();
        format!("{begin}{}", piece.repeat(count)).into_bytes()
    };
    let rss = "<rss version='2.0'><channel><title>a</title>";
    let item = "<rss version='2.0'><channel><title>a</title><item><title>a</title><description>";
    for (what, body) in [
        ("<item/>", fill(rss, "<item/>")),
        (
            "items with a title",
            fill(rss, "<item><title>a</title></item>"),
        ),
        (
            "JSON items {}",
            fill("{\"version\":\"1\",\"items\":[{}", ",{}"),
        ),
        (
            "JSON items with ids",
            fill(
                "{\"version\":\"1\",\"items\":[{}",
                ",{\"id\":1,\"title\":\"a\"}",
            ),
        ),
        ("tags in a description", fill(item, "<b>")),
        ("attributes of one tag", fill(&format!("{item}<b"), " a")),
        ("media:group, nested", fill(item, "<media:group>")),
        ("references", fill(item, "&amp;lt;")),
        ("CDATA sections", fill(item, "<![CDATA[a]]>&")),
        ("open comments", fill(rss, "<!--")),
        ("open instructions", fill(rss, "<?")),
        (
            "links of one item",
            fill(&format!("{rss}<item>"), "<link>http://a.example/</link>"),
        ),
        ("declarations of namespaces", fill("<rss", " xmlns:a='b'")),
        ("one text", fill(item, "word ")),
        (
            "bytes of no character",
            [item.as_bytes(), &vec![0xFF; HOSTILE_BYTES - 200]].concat(),
        ),
    ] {
        fs::write("/proc/self/clear_refs", "5").context("reset the high-water mark")?;
        let before = memory("VmRSS:")?;
        let begin = Instant::now();
        let posts = poll(&body).await.unwrap_or_default();
        let time = begin.elapsed();
        let grown = memory("VmHWM:")? - before;
        let measured = format!(
            "{:.0} ms, {grown:.0} MB, {posts} posts",
            time.as_secs_f64() * 1e3
        );
        let row = Row::new(format!("5 MB of {what}"), measured);
        report.row(row.goal("< 32 MB", grown < MOST_MEMORY));
    }
    Ok(())
}

/// Megabytes of this process in `/proc/self/status`.
fn memory(name: &str) -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kibibytes.context("no such line")? * 1_024.0 / MB)
}

/// A sound feed as blogs have it, with HTML in its descriptions.
fn ordinary() -> Vec<u8> {
    let paragraph = "<p>Some <b>words</b> about a kettle &amp; its <a href=\"https://site.example/\">spout</a>, again and again.</p>\n";
    let item = |number: usize| {
        format!(
            "<item><title>Post {number}</title><link>https://site.example/{number}</link><guid>https://site.example/{number}</guid>\
             <pubDate>Tue, 01 Oct 2024 10:{:02}:00 GMT</pubDate><dc:creator>Ana</dc:creator>\
             <description><![CDATA[{}]]></description></item>\n",
            number % 60,
            paragraph.repeat(44)
        )
    };
    let items: String = (0..400).map(item).collect();
    format!(
        "<?xml version=\"1.0\"?><rss version=\"2.0\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><channel>\
         <title>Site</title>{items}</channel></rss>"
    )
    .into_bytes()
}

fn address() -> Result<Url> {
    Url::parse("https://feed.example/feed").context("an address")
}

struct Always(Vec<u8>);

#[async_trait]
impl Fetch for Always {
    async fn get(
        &self,
        url: &Url,
        _: &[(&str, &str)],
        _: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        Ok(Fetched {
            status: 200,
            headers: Vec::new(),
            body: self.0.clone(),
            final_url: url.clone(),
        })
    }
}

/// Number of posts of a first poll.
async fn poll(body: &[u8]) -> Result<usize, PollError> {
    let fetch = Arc::new(Always(body.to_vec()));
    let feeds = FeedAdapter::new("boards".into(), Source::Forum, None, fetch);
    let limits = PollLimits::default();
    let polled = feeds
        .poll("https://feed.example/feed", None, &limits)
        .await?;
    Ok(polled.posts.len())
}

fn mutate(body: &mut Vec<u8>, other: &[u8], random: &mut Random) {
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
        usize::try_from((mixed ^ (mixed >> 31)) % limit.max(1) as u64).unwrap_or_default()
    }
}
