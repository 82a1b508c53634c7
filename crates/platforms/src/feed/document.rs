//! Parses bytes into a feed and refuses documents that only an attacker sends.

use std::borrow::Cow;

use feed_rs::{model::Feed, parser};
use url::Url;

use super::depth::flaw;
use crate::{PollError, text::repair};

/// The most items of a document that are parsed one by one.
const MAX_ITEMS: usize = 1_000;
/// How much of a document is searched for its document type.
const PROLOG_BYTES: usize = 64 * 1024;

/// Parses a feed of any format; relative links are resolved against `url`. A long document takes long: do not
/// call it on the runtime's threads.
///
/// # Errors
/// When the document is not a feed, or is one that only an attacker sends.
pub fn parse(body: &[u8], url: &Url) -> Result<Feed, PollError> {
    read(body, url).map(|(feed, _)| feed)
}

/// Parses as [`parse`] does, and returns the items that cannot be read too.
pub(super) fn read(body: &[u8], url: &Url) -> Result<(Feed, Vec<Odd>), PollError> {
    if declares_entities(body) {
        let problem = "a document type with its own declarations";
        return Err(PollError::Malformed(problem.to_owned()));
    }
    let body = with_known_version(body);
    let error = match parse_sound(&body, url) {
        Ok(feed) => return Ok((feed, Vec::new())),
        Err(error) => error,
    };
    // An invalid character in one entry must not make the document unreadable.
    let is_json = body.trim_ascii_start().starts_with(b"{");
    let repaired = if is_json {
        repair::json(&body)
    } else {
        repair::xml(&body)
    };
    let (body, error) = match repaired.map(|body| (parse_sound(&body, url), body)) {
        Some((Ok(feed), _)) => return Ok((feed, Vec::new())),
        Some((Err(error), repaired)) => (Cow::Owned(repaired), error),
        None => (body, error),
    };
    one_by_one(&body, url).ok_or(error)
}

/// An item that cannot be read, and why.
pub(super) type Odd = (serde_json::Value, PollError);

/// Parses a JSON Feed item by item. `None` if it is not a JSON Feed, or cannot be read even without its items.
fn one_by_one(body: &[u8], url: &Url) -> Option<(Feed, Vec<Odd>)> {
    if flaw(body).is_some() {
        return None;
    }
    let mut document: serde_json::Value = serde_json::from_slice(body).ok()?;
    let items = document.get_mut("items")?.as_array_mut()?;
    let mut items = std::mem::take(items);
    items.truncate(MAX_ITEMS);
    let mut with = |items: Vec<serde_json::Value>| {
        document["items"] = serde_json::Value::Array(items);
        parse_sound(document.to_string().as_bytes(), url)
    };
    let mut feed = with(Vec::new()).ok()?;
    let mut odd = Vec::new();
    for item in items {
        match with(vec![item.clone()]) {
            Ok(parsed) => feed.entries.extend(parsed.entries),
            Err(error) => odd.push((item, error)),
        }
    }
    Some((feed, odd))
}

fn parse_sound(body: &[u8], url: &Url) -> Result<Feed, PollError> {
    if let Some(problem) = flaw(body) {
        return Err(PollError::Malformed(problem.to_owned()));
    }
    parser::Builder::new()
        .base_uri(Some(url.as_str()))
        // Left empty, so that [`super::entry`] can see which entries have no id.
        .id_generator(|_, _, _| String::new())
        .sanitize_content(false)
        .build()
        .parse(body)
        .map_err(|error| PollError::Malformed(error.to_string()))
}

/// The parser accepts RSS only with a known version: 0.93, 2.01 and a missing version are read as 2.0.
fn with_known_version(body: &[u8]) -> Cow<'_, [u8]> {
    let prolog = &body[..body.len().min(PROLOG_BYTES)];
    let root = prolog.windows(5).position(|window| {
        window.starts_with(b"<rss") && (window[4].is_ascii_whitespace() || window[4] == b'>')
    });
    let Some(start) = root.map(|root| root + 4) else {
        return Cow::Borrowed(body);
    };
    let end = prolog[start..].iter().position(|byte| *byte == b'>');
    let attributes = &prolog[start..end.map_or(prolog.len(), |end| start + end)];
    let attributes = String::from_utf8_lossy(attributes);
    let known = ["2.0", "0.91", "0.92", ""];
    let named = attributes.split_once(" version=").map(|(before, rest)| {
        let quote = rest.chars().next().unwrap_or('"');
        let value = rest.get(quote.len_utf8()..).unwrap_or_default();
        let value = value.split(quote).next().unwrap_or_default();
        (before.len(), value.to_owned())
    });
    if named
        .as_ref()
        .is_some_and(|(_, value)| known.contains(&value.as_str()))
    {
        return Cow::Borrowed(body);
    }
    let mut patched = body.to_vec();
    if let Some((at, _)) = named.filter(|(at, _)| body.get(start + at + 1) == Some(&b'v')) {
        // Renames the attribute at the same length.
        patched[start + at + 1] = b'x';
    }
    patched.splice(start..start, *b" version=\"2.0\"");
    Cow::Owned(patched)
}

/// Returns true if the document type has an internal subset: `<!DOCTYPE rss [ … ]>`.
fn declares_entities(body: &[u8]) -> bool {
    // Without its zero bytes, UTF-16 reads as ASCII, which is enough here.
    let prolog: Vec<u8> = body
        .iter()
        .take(PROLOG_BYTES)
        .filter(|byte| **byte != 0)
        .map(u8::to_ascii_uppercase)
        .collect();
    let root = prolog
        .windows(2)
        .position(|pair| pair[0] == b'<' && pair[1].is_ascii_alphabetic())
        .unwrap_or(prolog.len());
    let prolog = &prolog[..root];
    let holds = |word: &[u8]| prolog.windows(word.len()).any(|window| window == word);
    if holds(b"<!ENTITY") {
        return true;
    }
    let Some(start) = prolog.windows(9).position(|window| window == b"<!DOCTYPE") else {
        return false;
    };
    let end = prolog[start..].iter().position(|byte| *byte == b'>');
    let declaration = &prolog[start..end.map_or(prolog.len(), |end| start + end)];
    declaration.contains(&b'[')
}

#[cfg(test)]
mod tests {
    use super::*;

    const RSS: &str = r#"<rss version="2.0" xmlns:media="http://search.yahoo.com/mrss/"
        xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel>"#;

    fn read(body: &[u8]) -> Result<Feed, PollError> {
        parse(body, &Url::parse("https://a.example/feed").unwrap())
    }

    #[test]
    fn an_entity_bomb_is_refused() {
        let bomb = br#"<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol">
            <!ENTITY lol2 "&lol;&lol;">]><rss version="2.0"><channel><title>&lol2;</title></channel></rss>"#;
        assert!(matches!(read(bomb), Err(PollError::Malformed(_))));
    }

    #[test]
    fn a_plain_document_type_is_not() {
        let plain = br#"<?xml version="1.0"?><!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN"
            "http://my.netscape.com/publish/formats/rss-0.91.dtd"><rss version="0.91"><channel><title>a</title>
            <link>http://a.example/</link><description>[b]</description></channel></rss>"#;
        assert!(read(plain).is_ok());
    }

    #[test]
    fn rss_of_any_version_is_read() {
        for root in [
            "rss",
            "rss version=\"0.93\"",
            "rss  version='2.01' xmlns:a=\"b\"",
            "rss version='2.0'",
            "rss version=\"\"",
            "rss version=",
        ] {
            let body = format!("<{root}><channel><title>a</title></channel></rss>");
            let read = read(body.as_bytes());
            assert_eq!(read.is_ok(), root != "rss version=", "{root}: {read:?}");
        }
    }

    #[test]
    fn an_odd_character_in_one_entry_does_not_stop_its_feed() {
        let item = |title: &str| format!("<item><title>{title}</title><guid>{title}</guid></item>");
        for odd in ["&#0;", "&#xD83D;", "&#x1F;", "a\u{1}b", "&#xFFFFFFFFF;"] {
            let body = format!("{RSS}{}{}</channel></rss>", item(odd), item("plain"));
            assert_eq!(read(body.as_bytes()).unwrap().entries.len(), 2, "{odd}");
        }
        let json = r#"{"version": "https://jsonfeed.org/version/1.1", "title": "a",
            "items": [{"id": "1", "title": "\ud83d", "content_text": "a"}, {"id": "2", "content_text": "b"}]}"#;
        assert_eq!(read(json.as_bytes()).unwrap().entries.len(), 2);
    }

    #[test]
    fn nesting_is_survived() {
        let deep = "<a>".repeat(500_000);
        let media = "<media:group>".repeat(300_000);
        let category = "<itunes:category text=\"a\">".repeat(150_000);
        // The maximum depth, for a parser that calls itself.
        let shallow = "<media:group>".repeat(125);
        for body in [
            format!("{RSS}<item>{media}"),
            format!("{RSS}{category}"),
            format!(
                "{RSS}<item>{shallow}{}</item></channel></rss>",
                "</media:group>".repeat(125)
            ),
            format!("<rss version=\"2.0\"><channel><item><description>{deep}"),
            format!("<feed><entry><content type=\"xhtml\">{deep}"),
            format!("<rss version=\"2.0\"><channel><item>{deep}"),
            format!(
                "{{\"version\":\"https://jsonfeed.org/version/1\",\"items\":{}",
                "[".repeat(500_000)
            ),
            deep,
        ] {
            let _ = read(body.as_bytes());
        }
    }
}
