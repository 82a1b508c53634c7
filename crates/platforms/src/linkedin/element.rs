//! Converts an element of the Posts API to a post.

use domain::{Post, PostType, Timestamp, User};
use serde::Deserialize;
use serde_json::Value;

use super::little;
use crate::null;
use crate::text;

const ORGANIZATION: &str = "urn:li:organization:";
const FEED_URL: &str = "https://www.linkedin.com/feed/update/";
const COMPANY_URL: &str = "https://www.linkedin.com/company/";
/// Maximum number of options of a poll that are read. LinkedIn allows four.
const MAX_OPTIONS: usize = 10;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Element {
    id: String,
    #[serde(default, deserialize_with = "null::or_default")]
    author: String,
    #[serde(default)]
    commentary: Option<String>,
    #[serde(default)]
    visibility: Option<String>,
    #[serde(default)]
    lifecycle_state: Option<String>,
    created_at: Option<i64>,
    published_at: Option<i64>,
    last_modified_at: Option<i64>,
    #[serde(default)]
    content: Value,
}

pub(super) fn organization_urn(id: &str) -> String {
    format!("{ORGANIZATION}{id}")
}

impl Element {
    /// `None` if it is not a post or has no valid id.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let element = Self::deserialize(value).ok()?;
        let number = ["urn:li:share:", "urn:li:ugcPost:"]
            .iter()
            .find_map(|kind| element.id.strip_prefix(kind))?;
        let is_number =
            (1..=24).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
        is_number.then_some(element)
    }

    /// The id, the same wherever the post is shown.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Returns true if everyone may see it, or at least everyone who is signed in.
    pub(super) fn is_public(&self) -> bool {
        let state = self.lifecycle_state.as_deref().unwrap_or("PUBLISHED");
        let visibility = self.visibility.as_deref().unwrap_or("PUBLIC");
        state == "PUBLISHED" && matches!(visibility, "PUBLIC" | "LOGGED_IN")
    }

    pub(super) fn time(&self) -> Option<Timestamp> {
        self.published_at.or(self.created_at).and_then(from_millis)
    }

    /// Time that the list is sorted by.
    pub(super) fn modified(&self) -> Option<Timestamp> {
        let modified = self.last_modified_at.and_then(from_millis);
        modified.max(self.time())
    }

    /// `None` if it has no text, for example a share without a comment.
    pub(super) fn post(&self, time: Timestamp) -> Option<Post> {
        Some(Post {
            post_type: PostType::NetworkPost,
            time,
            id: self.id.clone(),
            url: format!("{FEED_URL}{}", self.id),
            title: None,
            text: Some(text::some_block(&self.text())?),
            subforum: None,
            user: self.user(),
        })
    }

    /// The commentary, followed by the text of the attachment: an article, a poll or a picture.
    fn text(&self) -> String {
        let commentary = self.commentary.as_deref().unwrap_or_default();
        let mut parts = vec![little::decode(commentary)];
        let mut add = |value: &Value| {
            let words = value.as_str().map(text::line);
            parts.extend(words.filter(|words| !words.is_empty()));
        };
        add(&self.content["article"]["title"]);
        add(&self.content["article"]["description"]);
        add(&self.content["media"]["title"]);
        add(&self.content["media"]["altText"]);
        add(&self.content["poll"]["question"]);
        let options = self.content["poll"]["options"].as_array();
        for option in options.into_iter().flatten().take(MAX_OPTIONS) {
            add(&option["text"]);
        }
        parts.join("\n\n")
    }

    /// Only the number of an organization is known: the names need another LinkedIn product.
    fn user(&self) -> User {
        let number = self.author.strip_prefix(ORGANIZATION).filter(|number| {
            (1..=20).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit())
        });
        match number {
            Some(number) => User {
                id: self.author.clone(),
                name: number.to_owned(),
                url: format!("{COMPANY_URL}{number}/"),
            },
            None => User {
                id: self.id.clone(),
                name: "LinkedIn".to_owned(),
                url: format!("{FEED_URL}{}", self.id),
            },
        }
    }
}

fn from_millis(millis: i64) -> Option<Timestamp> {
    Timestamp::from_micros(millis.checked_mul(1_000)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Element;

    #[test]
    fn elements_that_are_not_posts_are_skipped() {
        for odd in [
            json!(null),
            json!({}),
            json!({"id": 5}),
            json!({"id": "urn:li:share:"}),
            json!({"id": "urn:li:share:1/../x"}),
            json!({"id": "urn:li:person:1"}),
            json!({"id": "urn:li:share:1", "createdAt": "now"}),
        ] {
            assert!(Element::read(&odd).is_none(), "{odd}");
        }
        let far =
            json!({"id": "urn:li:share:1", "createdAt": i64::MAX, "lastModifiedAt": i64::MIN});
        let far = Element::read(&far).unwrap();
        assert_eq!((far.time(), far.modified()), (None, None));
    }

    #[test]
    fn shown_content_is_part_of_the_text() {
        let shown = json!({
            "id": "urn:li:ugcPost:7", "author": "urn:li:organization:12", "commentary": "Vote \\(now\\)",
            "content": {"poll": {"question": "Which?", "options": [{"text": "A"}, {"text": "B"}, 5]}}
        });
        let shown = Element::read(&shown).unwrap();
        let post = shown.post(domain::Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(post.text.as_deref(), Some("Vote (now)\n\nWhich?\n\nA\n\nB"));
        assert_eq!(post.user.url, "https://www.linkedin.com/company/12/");
        let silent =
            json!({"id": "urn:li:share:7", "content": {"reference": {"id": "urn:li:share:6"}}});
        let silent = Element::read(&silent).unwrap();
        assert_eq!(silent.post(domain::Timestamp::UNIX_EPOCH), None);
    }
}
