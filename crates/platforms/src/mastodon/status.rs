//! One status.

use domain::{Post, PostType, Timestamp, User};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::null;
use crate::{address::below, reading::Made, text};

const MAX_ADDRESS_BYTES: usize = 2_048;

#[derive(Debug, Deserialize)]
pub(super) struct Status {
    pub(super) id: String,
    created_at: String,
    #[serde(default, deserialize_with = "null::or_default")]
    uri: String,
    url: Option<String>,
    /// Each status has it, though it may be empty.
    #[serde(deserialize_with = "null::or_default")]
    content: String,
    #[serde(default, deserialize_with = "null::or_default")]
    spoiler_text: String,
    visibility: Option<String>,
    #[serde(default, deserialize_with = "null::or_default")]
    media_attachments: Vec<Value>,
    poll: Option<Value>,
    /// A boost. The boosted status is in the timeline itself.
    reblog: Option<Value>,
    account: Account,
}

#[derive(Debug, Deserialize)]
struct Account {
    id: String,
    #[serde(default, deserialize_with = "null::or_default")]
    acct: String,
    url: Option<String>,
    /// True if the author's posts may be found by search; missing on old servers.
    indexable: Option<bool>,
    noindex: Option<bool>,
    suspended: Option<bool>,
}

impl Status {
    pub(super) fn read(value: &Value) -> serde_json::Result<Self> {
        let status = Self::deserialize(value)?;
        if super::is_id(&status.id) {
            Ok(status)
        } else {
            Err(serde::de::Error::custom("no such id"))
        }
    }

    pub(super) fn time(&self) -> Option<Timestamp> {
        self.created_at.parse().ok()
    }

    /// `None` for a boost, a status that is not public, an author who refuses indexing, and a status without
    /// any text.
    pub(super) fn post(&self, base: &Url, time: Timestamp) -> Made {
        let account = &self.account;
        let visibility = self.visibility.as_deref();
        let public = matches!(visibility, None | Some("public" | "unlisted"));
        let hidden = account.indexable == Some(false)
            || account.noindex == Some(true)
            || account.suspended == Some(true);
        let name = full_name(&account.acct, base);
        if self.reblog.is_some() || !public || hidden {
            return Ok(None);
        }
        if name.is_empty() {
            return Err("no author");
        }
        let warning = text::block(&self.spoiler_text);
        let parts = [
            warning,
            text::from_html(&self.content),
            self.options(),
            self.alternative_texts(),
        ];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let Some(text) = text::some_block(&parts.join("\n\n")) else {
            return Ok(None);
        };
        let handle = account.acct.trim_start_matches('@');
        let here = |path: &str| below(base, path).to_string();
        let own = here(&format!("@{}/{}", text::line(handle), self.id));
        let url = address(self.url.as_deref()).unwrap_or(own);
        Ok(Some(Post {
            post_type: PostType::MicroblogTweet,
            time,
            id: address(Some(&self.uri)).unwrap_or_else(|| here(&format!("statuses/{}", self.id))),
            title: None,
            text: Some(text),
            url,
            subforum: None,
            user: User {
                id: text::line(&account.id),
                url: address(account.url.as_deref())
                    .unwrap_or_else(|| here(&format!("@{}", text::line(handle)))),
                name,
            },
        }))
    }
}

impl Status {
    /// The answers that a poll offers.
    fn options(&self) -> String {
        let options = self
            .poll
            .as_ref()
            .and_then(|poll| poll["options"].as_array());
        let titles = options
            .into_iter()
            .flatten()
            .filter_map(|option| option["title"].as_str());
        text::block(&titles.collect::<Vec<_>>().join("\n"))
    }

    /// Alternative texts of pictures.
    fn alternative_texts(&self) -> String {
        let media = self.media_attachments.iter();
        let texts = media.filter_map(|one| one["description"].as_str());
        text::block(&texts.collect::<Vec<_>>().join("\n"))
    }
}

/// `name@host`, for local authors too.
fn full_name(acct: &str, base: &Url) -> String {
    let acct = text::line(acct.trim_start_matches('@'));
    if acct.is_empty() || acct.contains('@') {
        return acct;
    }
    let host = base.host_str().unwrap_or_default();
    match base.port() {
        Some(port) => format!("{acct}@{host}:{port}"),
        None => format!("{acct}@{host}"),
    }
}

fn address(given: Option<&str>) -> Option<String> {
    let given = given?.trim();
    let url = Url::parse(given).ok()?;
    let web = matches!(url.scheme(), "http" | "https") && url.has_host();
    (web && given.len() <= MAX_ADDRESS_BYTES).then(|| text::line(given))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(mut status: Value) -> Option<String> {
        let shape = json!({"id": "1", "created_at": "2026-11-21T02:24:12Z", "account": {"id": "7", "acct": "ana", "indexable": null}});
        for (name, value) in shape.as_object().unwrap() {
            status[name] = value.clone();
        }
        let status = Status::read(&status).unwrap();
        let base = Url::parse("https://social.example/").unwrap();
        status.post(&base, Timestamp::now()).unwrap()?.text
    }

    #[test]
    fn null_means_absent() {
        for (status, expected) in [
            (
                json!({"content": null, "spoiler_text": "A burr"}),
                Some("A burr"),
            ),
            (
                json!({"content": "<p>A burr</p>", "spoiler_text": null, "uri": null, "url": null, "poll": null}),
                Some("A burr"),
            ),
            (
                json!({"content": "A burr", "media_attachments": null, "visibility": null, "reblog": null}),
                Some("A burr"),
            ),
            (json!({"content": null, "spoiler_text": null}), None),
        ] {
            assert_eq!(text(status.clone()).as_deref(), expected, "{status}");
        }
    }

    #[test]
    fn alternative_texts_and_polls_are_part_of_the_text() {
        let status = json!({
            "content": "<p class=\"quote-inline\">RE: https://far.example/1</p><p>Look</p>",
            "media_attachments": [{"description": "A bowl on a lathe"}, {"description": null}, 7],
            "poll": {"options": [{"title": "Walnut"}, {"title": "Cedar"}]},
        });
        assert_eq!(
            text(status).as_deref(),
            Some("Look\n\nWalnut\nCedar\n\nA bowl on a lathe")
        );
        let picture = json!({"content": "", "media_attachments": [{"description": "A bowl"}]});
        assert_eq!(text(picture).as_deref(), Some("A bowl"));
    }
}
