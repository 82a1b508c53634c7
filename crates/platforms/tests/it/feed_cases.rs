//! Feeds with faults that users of other readers reported in public, and more of their kinds.
//!
//! Each folder of `fixtures/feed-cases` has documents and `expected.json`: what the feed serves, step by step after an
//! ordinary document with one old entry, and which posts must come, each once. `{{FORM -AGE}}` in a document is a date
//! that long before its step (`@B`: before the ordinary document), `{{RANDOM}}` another value in each answer.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, FixedOffset, Utc};
use domain::{Post, Timestamp};
use flate2::{Compression, write::GzEncoder};
use platforms::{
    Adapter as _, Fetch, FetchError, FetchLimits, Fetched, PollLimits, Source, feed::FeedAdapter,
};
use serde::Deserialize;
use url::Url;

#[derive(Deserialize)]
struct Cases {
    feeds: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    baseline: String,
    content_type: String,
    headers: Option<String>,
    steps: Vec<Step>,
    #[serde(default)]
    accept_error: bool,
    /// Part of the notice that the feed must show.
    notice: Option<String>,
    expect: Vec<Expected>,
}

#[derive(Deserialize)]
struct Step {
    file: String,
    polls: usize,
    #[serde(default)]
    transform: Vec<String>,
    mode: Option<String>,
}

#[derive(Deserialize)]
struct Expected {
    /// Occurs in this post's title, text or address, and in no other's.
    key: String,
    title: Option<String>,
    text: Option<String>,
    url: Option<String>,
    url_prefix: Option<String>,
    user: Option<String>,
    /// Age at its step: `-40m`.
    time: Option<String>,
    /// `receipt`: the time of receipt is right too.
    tolerance: Option<serde_json::Value>,
}

/// What the server sends now.
#[derive(Default)]
struct Script {
    body: Vec<u8>,
    headers: Vec<(String, String)>,
    is_always_unchanged: bool,
    answers: usize,
}

#[derive(Clone, Default)]
struct Scripted(Arc<Mutex<Script>>);

#[async_trait]
impl Fetch for Scripted {
    async fn get(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let mut script = self.0.lock().unwrap();
        script.answers += 1;
        let is_conditional = headers.iter().any(|(name, _)| name.starts_with("if-"));
        let is_unchanged = script.is_always_unchanged && is_conditional;
        let random = format!("{:032x}", script.answers * 0x9E37_79B9);
        let body = String::from_utf8(script.body.clone());
        let body = body.map_or_else(
            |error| error.into_bytes(),
            |text| text.replace("{{RANDOM}}", &random).into_bytes(),
        );
        if body.len() > limits.max_bytes {
            return Err(FetchError::TooLarge {
                limit_bytes: limits.max_bytes,
            });
        }
        Ok(Fetched {
            status: if is_unchanged { 304 } else { 200 },
            headers: script.headers.clone(),
            body: if is_unchanged { Vec::new() } else { body },
            final_url: url.clone(),
        })
    }
}

/// Replaces the dates of a document, byte for byte elsewhere.
fn with_dates(body: &[u8], base: Timestamp, now: Timestamp) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = body;
    while let Some(start) = find(rest, b"{{") {
        let Some(end) = find(&rest[start..], b"}}") else {
            break;
        };
        let inside = std::str::from_utf8(&rest[start + 2..start + end]).unwrap();
        out.extend(&rest[..start]);
        match inside.split_once(' ') {
            Some((form, ages)) => {
                let (form, at) = match form.split_once('@') {
                    Some((form, _)) => (form, base),
                    None => (form, now),
                };
                let mut words = ages.split(' ');
                let at = at.minus(age(words.next().unwrap()));
                out.extend(date(form, at, words.next(), words.next()).bytes());
            }
            None => out.extend(format!("{{{{{inside}}}}}").bytes()),
        }
        rest = &rest[start + end + 2..];
    }
    out.extend(rest);
    out
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

fn age(text: &str) -> Duration {
    let (number, unit) = text.trim_start_matches('-').split_at(text.len() - 2);
    let number: u64 = number.parse().unwrap();
    match unit {
        "m" => Duration::from_mins(number),
        "h" => Duration::from_hours(number),
        "d" => Duration::from_hours(24 * number),
        other => panic!("{other}"),
    }
}

fn date(form: &str, at: Timestamp, offset: Option<&str>, label: Option<&str>) -> String {
    const RUSSIAN: [&str; 12] = [
        "янв", "фев", "мар", "апр", "мая", "июн", "июл", "авг", "сен", "окт", "ноя", "дек",
    ];
    const GERMAN: [&str; 7] = ["Mo", "Di", "Mi", "Do", "Fr", "Sa", "So"];
    let utc: DateTime<Utc> = DateTime::from_timestamp_micros(at.micros()).unwrap();
    let seconds = offset.map_or(0, |offset| {
        let number: i32 = offset.replace(':', "").parse().unwrap();
        (number / 100 * 60 + number % 100) * 60
    });
    let local = utc.with_timezone(&FixedOffset::east_opt(seconds).unwrap());
    let month = usize::try_from(chrono::Datelike::month0(&local)).unwrap();
    let weekday = chrono::Datelike::weekday(&local).num_days_from_monday() as usize;
    let zone = label.or(offset).unwrap_or("GMT");
    match form {
        "RFC822" => local
            .format(&format!("%a, %d %b %Y %H:%M:%S {zone}"))
            .to_string(),
        "RFC822-2DIGIT" => local.format("%a, %d %b %y %H:%M:%S GMT").to_string(),
        "RFC822-TIGHT" => local
            .format(&format!("%a, %d %b %Y %H:%M:%S{zone}"))
            .to_string(),
        "ISO" => local.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "ISO6" => local.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
        "DE" => format!("{}, {}", GERMAN[weekday], local.format("%d.%m.%Y - %H:%M")),
        "RU" => local
            .format(&format!("%d {} %Y %H:%M:%S GMT", RUSSIAN[month]))
            .to_string(),
        "ASCTIME" => local.format("%a %b %e %H:%M:%S %Y").to_string(),
        "SPACE" => local.format("%Y-%m-%d %H:%M:%S").to_string(),
        other => panic!("{other}"),
    }
}

fn baseline(format: &str, base: Timestamp) -> Vec<u8> {
    let document = match format {
        "json" => {
            r#"{"version": "https://jsonfeed.org/version/1.1", "title": "Baseline", "items": [{"id": "baseline-welcome",
            "url": "https://baseline.example/welcome", "title": "Welcome", "content_text": "Nothing new yet.",
            "date_published": "{{ISO@B -2h}}"}]}"#
        }
        "atom" => {
            r#"<feed xmlns="http://www.w3.org/2005/Atom"><title>Baseline</title><id>baseline</id><entry>
            <id>baseline-welcome</id><title>Welcome</title><link href="https://baseline.example/welcome"/>
            <updated>{{ISO@B -2h}}</updated><content>Nothing new yet.</content></entry></feed>"#
        }
        _ => {
            r#"<rss version="2.0"><channel><title>Baseline</title><item><title>Welcome</title>
            <link>https://baseline.example/welcome</link><guid isPermaLink="false">baseline-welcome</guid>
            <pubDate>{{RFC822@B -2h}}</pubDate><description>Nothing new yet.</description></item></channel></rss>"#
        }
    };
    with_dates(document.as_bytes(), base, base)
}

fn transformed(mut body: Vec<u8>, transforms: &[String]) -> Vec<u8> {
    for transform in transforms {
        body = match transform.as_str() {
            "gzip" => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(&body).unwrap();
                encoder.finish().unwrap()
            }
            "pad" => {
                let item = |number| {
                    let text = "word ".repeat(3_600);
                    format!(
                        "<item><title>Old {number}</title><guid>old-{number}</guid><pubDate>Mon, 01 Jan 2024 00:00:00 GMT</pubDate><description>{text}</description></item>"
                    )
                };
                let items: String = (0..300).map(item).collect();
                String::from_utf8(body)
                    .unwrap()
                    .replace("</channel>", &format!("{items}</channel>"))
                    .into_bytes()
            }
            other => panic!("{other}"),
        };
    }
    body
}

/// Plays a case, and returns what is wrong.
async fn play(folder: &Path, case: &Case) -> Vec<String> {
    let server = Scripted::default();
    let feeds = FeedAdapter::new(
        "boards".into(),
        Source::Forum,
        None,
        Arc::new(server.clone()),
    );
    let base = Timestamp::now();
    let mut headers = vec![("content-type".to_owned(), case.content_type.clone())];
    if let Some(file) = &case.headers {
        let lines = fs::read_to_string(folder.join(file)).unwrap();
        let pairs = lines.lines().filter_map(|line| line.split_once(": "));
        headers.extend(pairs.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())));
    }
    {
        let mut script = server.0.lock().unwrap();
        script.headers = headers;
        script.body = baseline(&case.baseline, base);
    }
    let limits = PollLimits {
        since: Some(base.minus(Duration::from_hours(24))),
        ..PollLimits::default()
    };
    let mut wrong = Vec::new();
    let (mut posts, mut cursor, mut notice): (Vec<Post>, _, _) = (Vec::new(), None, None);
    let mut poll = async |posts: &mut Vec<Post>| match feeds
        .poll("https://feed.example/feed", cursor.as_ref(), &limits)
        .await
    {
        Ok(polled) => {
            // As it is stored.
            cursor = platforms::Cursor::from_json(&polled.cursor.to_json());
            if !polled.not_modified {
                notice = polled.notice;
            }
            posts.extend(polled.posts);
            None
        }
        Err(error) => Some(error.to_string()),
    };
    poll(&mut posts).await;
    posts.clear();
    let now = Timestamp::now();
    for step in &case.steps {
        let body = fs::read(folder.join(&step.file)).unwrap();
        {
            let mut script = server.0.lock().unwrap();
            script.body = transformed(with_dates(&body, base, now), &step.transform);
            script.is_always_unchanged = step.mode.as_deref() == Some("always-304");
        }
        for _ in 0..step.polls {
            match poll(&mut posts).await {
                Some(_) if case.accept_error => return wrong,
                Some(error) => wrong.push(error),
                None => {}
            }
        }
    }
    if let Some(part) = &case.notice
        && !notice.is_some_and(|notice| notice.contains(part.as_str()))
    {
        wrong.push(format!("the notice is {notice:?}"));
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for post in &posts {
        let says = |key: &str| {
            let texts = [post.title.as_deref(), post.text.as_deref(), Some(&post.url)];
            texts
                .into_iter()
                .flatten()
                .any(|text| text.to_lowercase().contains(&key.to_lowercase()))
        };
        let Some(expected) = case.expect.iter().find(|expected| says(&expected.key)) else {
            wrong.push(format!("not expected: {post:?}"));
            continue;
        };
        *counts.entry(&expected.key).or_default() += 1;
        let mut check = |field: &str, expected: Option<&str>, found: Option<&str>| {
            if expected.is_some() && expected != found {
                wrong.push(format!("{field}: {found:?}, expected {expected:?}"));
            }
        };
        check("title", expected.title.as_deref(), post.title.as_deref());
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        check(
            "text",
            expected.text.as_deref(),
            post.text.as_deref().map(words).as_deref(),
        );
        check("url", expected.url.as_deref(), Some(&post.url));
        check("user", expected.user.as_deref(), Some(&post.user.name));
        let prefix = expected.url_prefix.as_deref();
        check(
            "url",
            prefix,
            prefix.filter(|prefix| post.url.starts_with(prefix)),
        );
        if let Some(time) = &expected.time {
            let off = |right: Timestamp| post.time.micros().abs_diff(right.micros()) < 60_000_000;
            let is_right = off(now.minus(age(time))) || expected.tolerance.is_some() && off(now);
            check(
                "time",
                (!is_right).then_some(time),
                Some(&post.time.to_string()),
            );
        }
    }
    for expected in &case.expect {
        match counts.get(expected.key.as_str()).copied().unwrap_or(0) {
            1 => {}
            count => wrong.push(format!("{} came {count} times", expected.key)),
        }
    }
    wrong
}

#[tokio::test]
async fn feeds_of_the_wild_are_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/feed-cases");
    let mut folders: Vec<PathBuf> = fs::read_dir(root)
        .unwrap()
        .map(|one| one.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    assert!(folders.len() >= 19);
    let mut wrong = Vec::new();
    for folder in folders {
        let cases = fs::read_to_string(folder.join("expected.json")).unwrap();
        let cases: Cases = serde_json::from_str(&cases).unwrap();
        for case in &cases.feeds {
            let found = play(&folder, case).await;
            let name = format!("{}/{}", folder.file_name().unwrap().display(), case.name);
            wrong.extend(found.into_iter().map(|one| format!("{name}: {one}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
