//! Communities that an instance knows, local and remote.

use serde::Deserialize;
use url::Url;

use super::{Lemmy, PER_PAGE, accepts};
use crate::null;
use crate::{Community, PollError, address::below, text};

#[derive(Deserialize)]
struct Answer {
    communities: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct View {
    community: Described,
    #[serde(default, deserialize_with = "null::or_default")]
    counts: Counts,
}

#[derive(Deserialize)]
struct Described {
    name: String,
    #[serde(default, deserialize_with = "null::or_default")]
    title: String,
    description: Option<String>,
    #[serde(default, deserialize_with = "null::or_default")]
    actor_id: String,
    #[serde(default, deserialize_with = "null::or_default")]
    local: bool,
    #[serde(default, deserialize_with = "null::or_default")]
    deleted: bool,
    #[serde(default, deserialize_with = "null::or_default")]
    removed: bool,
}

#[derive(Default, Deserialize)]
struct Counts {
    subscribers: Option<u64>,
}

pub(super) async fn communities(
    platform: &Lemmy,
    words: &str,
    limit: usize,
) -> Result<Vec<Community>, PollError> {
    let mut url = below(&platform.base_url, "api/v3/search");
    url.query_pairs_mut()
        .append_pair("q", words)
        .append_pair("type_", "Communities")
        .append_pair("listing_type", "All")
        .append_pair("sort", "TopAll")
        .append_pair("limit", &limit.clamp(1, PER_PAGE).to_string());
    let answer = platform.get(&url).await?;
    super::refusal(&answer, "search")?;
    let answer: Answer = answer.success("search")?.json()?;
    let views = answer.communities.into_iter();
    let found = views.filter_map(|view| View::deserialize(view).ok()?.community());
    Ok(found.take(limit).collect())
}

impl View {
    fn community(self) -> Option<Community> {
        let Described {
            name,
            title,
            description,
            actor_id,
            local,
            deleted,
            removed,
        } = self.community;
        let url = Url::parse(&actor_id).ok()?;
        let what = if local {
            format!("c/{name}")
        } else {
            format!("c/{name}@{}", url.host_str()?)
        };
        let web = matches!(url.scheme(), "http" | "https");
        if deleted || removed || !web || !accepts(&what) {
            return None;
        }
        let title = text::line(&title);
        Some(Community {
            what,
            name: if title.is_empty() { name } else { title },
            about: text::from_markdown(description.as_deref().unwrap_or_default()),
            url: text::line(&actor_id),
            members: self.counts.subscribers,
        })
    }
}
