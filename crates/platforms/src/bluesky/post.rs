//! A post's record: its text with full links, the link targets, and its time.

use domain::{Post, PostType, Timestamp, User};
use serde_json::Value;

use crate::text;

const SITE: &str = "https://bsky.app/profile";
const MAX_FACETS: usize = 200;
const MAX_TAGS: usize = 32;
const MAX_PICTURES: usize = 32;
const MAX_URI_BYTES: usize = 2_048;
/// The author does not want to be shown to logged-out users.
pub(super) const HIDDEN: &str = "!no-unauthenticated";
/// The year 1990: an older `createdAt` is the zero value of some program.
const EARLIEST_MICROS: i64 = 631_152_000_000_000;

/// `received` is the stream's time in microseconds. `None` for a post without text, and for one whose author
/// hides it.
pub(super) fn read(
    uri: String,
    did: &str,
    rkey: &str,
    record: &Value,
    received: i64,
) -> Option<Post> {
    if is_hidden(record.pointer("/labels/values")) {
        return None;
    }
    let mut whole = expand(
        record["text"].as_str().unwrap_or_default(),
        &record["facets"],
    );
    let external = record.pointer("/embed/external");
    if let Some(external) = external.or_else(|| record.pointer("/embed/media/external")) {
        for name in ["title", "description", "uri"] {
            let part = external[name].as_str().unwrap_or_default();
            if !part.is_empty() && !whole.contains(part) {
                whole.push('\n');
                whole.push_str(part);
            }
        }
    }
    for alternative in alternative_texts(&record["embed"]) {
        if !whole.contains(alternative) {
            whole.push('\n');
            whole.push_str(alternative);
        }
    }
    append_tags(&mut whole, &record["tags"]);
    Some(Post {
        post_type: PostType::MicroblogTweet,
        time: time(record["createdAt"].as_str(), received)?,
        id: uri,
        title: None,
        text: Some(text::some_block(&whole)?),
        url: format!("{SITE}/{did}/post/{rkey}"),
        subforum: None,
        user: User {
            id: did.to_owned(),
            name: did.to_owned(),
            url: format!("{SITE}/{did}"),
        },
    })
}

/// Alternative texts of pictures and videos, also of those next to a quoted post.
fn alternative_texts(embed: &Value) -> Vec<&str> {
    let places = [embed, &embed["media"]];
    let pictures = places.iter().filter_map(|place| place["images"].as_array());
    let pictures = pictures.flatten().take(MAX_PICTURES);
    let all = pictures.chain(places.iter().copied());
    let texts = all.filter_map(|one| one["alt"].as_str()).map(str::trim);
    texts.filter(|text| !text.is_empty()).collect()
}

/// Returns true if one of these labels asks not to be shown in public.
pub(super) fn is_hidden(labels: Option<&Value>) -> bool {
    let labels = labels.and_then(Value::as_array);
    labels.is_some_and(|labels| labels.iter().any(|label| label["val"] == HIDDEN))
}

/// The earlier of the author's time and the stream's time.
fn time(created: Option<&str>, received: i64) -> Option<Timestamp> {
    let received = Timestamp::from_micros(received)?;
    let created = created.and_then(|text| text.parse::<Timestamp>().ok());
    let created = created.filter(|time| time.micros() >= EARLIEST_MICROS);
    Some(created.map_or(received, |created| created.min(received)))
}

/// Appends tags that are stored next to the text, where readers do not see them.
fn append_tags(whole: &mut String, tags: &Value) {
    let tags = tags.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut between = '\n';
    for tag in tags.iter().take(MAX_TAGS).filter_map(Value::as_str) {
        let tag = format!("#{}", tag.trim_start_matches('#'));
        if tag.len() > 1 && !whole.contains(&tag) {
            whole.push(between);
            whole.push_str(&tag);
            between = ' ';
        }
    }
}

/// The text with full links. Link positions are offsets of UTF-8 bytes. A shortened link is replaced by its
/// address; a link with another text gets the address after it.
fn expand(text: &str, facets: &Value) -> String {
    let facets = facets.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut links: Vec<(usize, usize, &str)> =
        facets.iter().take(MAX_FACETS).filter_map(link).collect();
    links.sort_unstable();
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (start, end, uri) in links {
        // Ignore overlapping links, and offsets within a character or beyond the end.
        let Some(shown) = (start >= done).then(|| text.get(start..end)).flatten() else {
            continue;
        };
        out.push_str(&text[done..start]);
        if is_beginning(shown, uri) {
            out.push_str(uri);
        } else {
            out.push_str(shown);
            out.push_str(&format!(" ({uri})"));
        }
        done = end;
    }
    out.push_str(&text[done..]);
    out
}

fn link(facet: &Value) -> Option<(usize, usize, &str)> {
    let at = |name: &str| usize::try_from(facet["index"][name].as_u64()?).ok();
    let features = facet["features"].as_array()?;
    let uri = features
        .iter()
        .find_map(|feature| feature["uri"].as_str())?;
    let web = uri.starts_with("https://") || uri.starts_with("http://");
    let (start, end) = (at("byteStart")?, at("byteEnd")?);
    (web && uri.len() <= MAX_URI_BYTES && start < end).then_some((start, end, uri))
}

/// Returns true if `shown` is the address or a shortened form of it.
fn is_beginning(shown: &str, uri: &str) -> bool {
    fn bare(address: &str) -> &str {
        let address = address.trim();
        let address = address
            .strip_prefix("https://")
            .or(address.strip_prefix("http://"));
        address.unwrap_or_default()
    }
    let shown = shown.trim().trim_end_matches('…').trim_end_matches("...");
    let shown = if shown.contains("://") {
        bare(shown)
    } else {
        shown
    };
    let whole = bare(uri);
    let without_www = whole.strip_prefix("www.").unwrap_or(whole);
    !shown.is_empty() && (whole.starts_with(shown) || without_www.starts_with(shown))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn facet(start: usize, end: usize, uri: &str) -> Value {
        json!({"index": {"byteStart": start, "byteEnd": end},
               "features": [{"$type": "app.bsky.richtext.facet#link", "uri": uri}]})
    }

    #[test]
    fn links_are_whole_and_offsets_are_bytes() {
        let uri = "https://www.youtube.com/watch?v=V5lDo-jw8mA";
        for (text, facets, expected) in [
            (
                "www.youtube.com/watch?v=V5lD...",
                json!([facet(0, 31, uri)]),
                uri.to_owned(),
            ),
            (
                "é youtube.com/w… ü",
                json!([facet(3, 19, uri)]),
                format!("é {uri} ü"),
            ),
            (
                "see this",
                json!([facet(4, 8, uri)]),
                format!("see this ({uri})"),
            ),
            // Within a character, beyond the end, backwards, overlapping, not a link.
            ("é", json!([facet(1, 2, uri)]), "é".to_owned()),
            ("é", json!([facet(0, 99, uri)]), "é".to_owned()),
            ("ab", json!([facet(2, 1, uri)]), "ab".to_owned()),
            ("ab", json!([facet(0, 1, "javascript:x")]), "ab".to_owned()),
            (
                "ab",
                json!([7, {"index": 1}, {"features": []}]),
                "ab".to_owned(),
            ),
            (
                "ab cd",
                json!([facet(0, 5, "https://a.example/"), facet(3, 5, uri)]),
                "ab cd (https://a.example/)".to_owned(),
            ),
        ] {
            assert_eq!(expand(text, &facets), expected);
        }
    }

    #[test]
    fn links_and_tags_are_part_of_the_text() {
        let record = json!({
            "text": "look", "createdAt": "2026-07-04T14:38:06.240Z", "tags": ["crm", 7],
            "embed": {"media": {"external": {"uri": "https://a.example/", "title": "A", "description": "b"}}},
        });
        let post = read(
            "at://x".into(),
            "did:plc:x",
            "k",
            &record,
            1_783_175_888_090_631,
        )
        .unwrap();
        assert_eq!(
            post.text.as_deref(),
            Some("look\nA\nb\nhttps://a.example/\n#crm")
        );
        assert_eq!(post.time.to_string(), "2026-07-04T14:38:06.240000Z");
    }

    #[test]
    fn alternative_texts_are_part_of_the_text() {
        for (embed, expected) in [
            (
                json!({"images": [{"alt": "A bowl"}, {"alt": ""}, {"alt": "A lathe"}]}),
                "A bowl\nA lathe",
            ),
            (
                json!({"media": {"images": [{"alt": "A bowl"}]}, "record": {"uri": "at://x"}}),
                "A bowl",
            ),
            (
                json!({"$type": "app.bsky.embed.video", "alt": "Turning a bowl"}),
                "Turning a bowl",
            ),
            (
                json!({"media": {"alt": "Turning a bowl"}}),
                "Turning a bowl",
            ),
        ] {
            let record =
                json!({"text": "", "createdAt": "2026-07-04T14:38:06.240Z", "embed": embed});
            let post = read(
                "at://x".into(),
                "did:plc:x",
                "k",
                &record,
                1_783_175_888_090_631,
            );
            assert_eq!(post.unwrap().text.as_deref(), Some(expected), "{record}");
        }
        let record = json!({"text": "", "embed": {"images": [{"alt": " "}, 7]}});
        assert!(read("at://x".into(), "did:plc:x", "k", &record, 1).is_none());
    }

    #[test]
    fn false_times_are_clamped() {
        let received = 1_783_175_888_090_631;
        let at = |created: &str| time(Some(created), received).unwrap().to_string();
        assert_eq!(at("2015-01-01T00:00:00Z"), "2015-01-01T00:00:00.000000Z");
        for lie in [
            "2099-01-01T00:00:00Z",
            "1970-01-01T00:00:00Z",
            "yesterday",
            "",
        ] {
            assert_eq!(at(lie), "2026-07-04T14:38:08.090631Z", "{lie}");
        }
    }
}
