//! One status.

use domain::{Post, PostType, Timestamp, User};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::{hackernews::below, text};

const MAX_ADDRESS_BYTES: usize = 2_048;

#[derive(Debug, Deserialize)]
pub(super) struct Status {
    pub(super) id: String,
    created_at: String,
    #[serde(default)]
    uri: String,
    url: Option<String>,
    #[serde(default)]
    content: String,
    #[serde(default)]
    spoiler_text: String,
    visibility: Option<String>,
    /// A boost. The boosted status is in the timeline itself.
    reblog: Option<Value>,
    account: Account,
}

#[derive(Debug, Deserialize)]
struct Account {
    id: String,
    #[serde(default)]
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
    pub(super) fn post(&self, base: &Url, time: Timestamp) -> Option<Post> {
        let account = &self.account;
        let visibility = self.visibility.as_deref();
        let public = matches!(visibility, None | Some("public" | "unlisted"));
        let hidden = account.indexable == Some(false)
            || account.noindex == Some(true)
            || account.suspended == Some(true);
        let name = full_name(&account.acct, base);
        if self.reblog.is_some() || !public || hidden || name.is_empty() {
            return None;
        }
        let warning = text::block(&self.spoiler_text);
        let content = text::from_html(&self.content);
        let whole = match (warning.is_empty(), content.is_empty()) {
            (false, false) => format!("{warning}\n\n{content}"),
            _ => warning + &content,
        };
        let handle = account.acct.trim_start_matches('@');
        let here = |path: &str| below(base, path).to_string();
        let own = here(&format!("@{}/{}", text::line(handle), self.id));
        let url = address(self.url.as_deref()).unwrap_or(own);
        Some(Post {
            post_type: PostType::MicroblogTweet,
            time,
            id: address(Some(&self.uri)).unwrap_or_else(|| here(&format!("statuses/{}", self.id))),
            title: None,
            text: Some(text::some_block(&whole)?),
            url,
            subforum: None,
            user: User {
                id: text::line(&account.id),
                url: address(account.url.as_deref())
                    .unwrap_or_else(|| here(&format!("@{}", text::line(handle)))),
                name,
            },
        })
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
