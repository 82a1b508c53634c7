//! Converts an item of a Page's feed to a post.

use chrono::DateTime;
use domain::{Post, PostType, Timestamp, User};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::null;
use crate::text;

const SITE: &str = "https://www.facebook.com/";
const MAX_ID_BYTES: usize = 100;

#[derive(Deserialize)]
pub(super) struct Item {
    id: String,
    message: Option<String>,
    story: Option<String>,
    created_time: Option<String>,
    permalink_url: Option<String>,
    from: Option<From>,
}

#[derive(Deserialize)]
struct From {
    #[serde(default, deserialize_with = "null::or_default")]
    id: String,
    #[serde(default, deserialize_with = "null::or_default")]
    name: String,
}

impl Item {
    /// `None` if it is not a post or has no valid id.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let item = Self::deserialize(value).ok()?;
        is_id(&item.id).then_some(item)
    }

    /// `<page>_<post>`.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn time(&self) -> Option<Timestamp> {
        parse_time(self.created_time.as_deref()?)
    }

    /// `None` if it has no text, for example a picture without a caption.
    pub(super) fn post(&self, platform: &str, page: &str, time: Timestamp) -> Option<Post> {
        let text = |text: &Option<String>| text::some_block(text.as_deref()?);
        Some(Post {
            post_type: PostType::NetworkPost,
            time,
            id: format!("{platform}:{}", self.id),
            url: self.url(),
            title: None,
            text: Some(text(&self.message).or_else(|| text(&self.story))?),
            subforum: None,
            user: self.user(page),
        })
    }

    fn url(&self) -> String {
        let named = self.permalink_url.as_deref().and_then(|url| {
            let url = Url::parse(url).ok()?;
            let host = url.host_str()?;
            let own = host == "facebook.com" || host.ends_with(".facebook.com");
            let sane = own && url.scheme() == "https" && url.as_str().len() <= 2_048;
            sane.then(|| url.into())
        });
        named.unwrap_or_else(|| format!("{SITE}{}", self.id))
    }

    /// The author, or the Page if the token may not read authors.
    fn user(&self, page: &str) -> User {
        let (id, name) = match &self.from {
            Some(from) if is_id(&from.id) => (from.id.as_str(), text::line(&from.name)),
            _ => (page, String::new()),
        };
        let name = Some(name).filter(|name| !name.is_empty());
        User {
            id: id.to_owned(),
            name: name.unwrap_or_else(|| id.to_owned()),
            url: format!("{SITE}{id}"),
        }
    }
}

fn is_id(id: &str) -> bool {
    (1..=MAX_ID_BYTES).contains(&id.len())
        && id
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}

/// Parses `2025-11-18T10:30:00+0000`; the offset may contain a colon.
fn parse_time(text: &str) -> Option<Timestamp> {
    let plain = DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%z");
    let time = plain.or_else(|_| DateTime::parse_from_rfc3339(text)).ok()?;
    Some(time.to_utc().into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Item, parse_time};

    #[test]
    fn times_have_offsets_of_either_form() {
        for text in [
            "2025-11-18T10:30:00+0000",
            "2025-11-18T12:30:00+0200",
            "2025-11-18T12:30:00+02:00",
            "2025-11-18T10:30:00Z",
        ] {
            let time = parse_time(text).unwrap().to_string();
            assert_eq!(time, "2025-11-18T10:30:00.000000Z", "{text}");
        }
        for odd in ["", "yesterday", "2025-11-18", "99999-11-18T10:30:00+0000"] {
            assert_eq!(parse_time(odd), None, "{odd}");
        }
    }

    #[test]
    fn address_on_another_host_is_ignored() {
        for (given, url) in [
            (
                "https://www.facebook.com/1/posts/2",
                "https://www.facebook.com/1/posts/2",
            ),
            (
                "https://facebook.com.evil.example/1",
                "https://www.facebook.com/1_2",
            ),
            ("javascript:alert(1)", "https://www.facebook.com/1_2"),
            ("/1/posts/2", "https://www.facebook.com/1_2"),
        ] {
            let item = json!({"id": "1_2", "story": "moved", "permalink_url": given, "from": {"id": "a/b"}});
            let item = Item::read(&item).unwrap();
            let post = item.post("fb", "1", domain::Timestamp::UNIX_EPOCH).unwrap();
            assert_eq!((post.url.as_str(), post.user.id.as_str()), (url, "1"));
        }
    }
}
