//! Hashtags from an instance's search; from its trends if only users may search.

use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::{Mastodon, PER_PAGE, is_tag};
use crate::null;
use crate::{Community, PollError, address::below, text};

#[derive(Deserialize)]
struct Found {
    hashtags: Vec<Tag>,
}

#[derive(Deserialize)]
struct Tag {
    name: String,
    url: Option<String>,
    #[serde(default, deserialize_with = "null::or_default")]
    history: Vec<Value>,
}

impl Tag {
    fn community(self, base: &Url) -> Community {
        let here = || below(base, &format!("tags/{}", self.name)).to_string();
        // Uses per day, newest day first, as strings.
        let used = self
            .history
            .iter()
            .filter_map(|day| day["accounts"].as_str()?.parse::<u64>().ok());
        Community {
            what: format!("tag/{}", self.name),
            about: String::new(),
            url: self
                .url
                .clone()
                .filter(|url| Url::parse(url).is_ok())
                .unwrap_or_else(here),
            members: used.max(),
            name: format!("#{}", text::line(&self.name)),
        }
    }
}

pub(super) async fn communities(
    platform: &Mastodon,
    words: &str,
    limit: usize,
) -> Result<Vec<Community>, PollError> {
    let mut url = below(&platform.base_url, "api/v2/search");
    url.query_pairs_mut()
        .append_pair("type", "hashtags")
        .append_pair("limit", &limit.min(PER_PAGE).to_string())
        .append_pair("q", words);
    let answer = platform.get(&url).await?;
    let tags = match answer.status {
        // On some instances only users may search.
        401 | 403 => {
            let trends = below(&platform.base_url, "api/v1/trends/tags");
            let mut tags: Vec<Tag> = platform.get(&trends).await?.success("trends")?.json()?;
            let words = words.to_lowercase();
            let about = |tag: &Tag| {
                let name = tag.name.to_lowercase();
                words.split_whitespace().any(|word| name.contains(word))
            };
            tags.retain(about);
            tags
        }
        _ => answer.success("search")?.json::<Found>()?.hashtags,
    };
    let tags = tags.into_iter().filter(|tag| is_tag(&tag.name));
    Ok(tags
        .take(limit)
        .map(|tag| tag.community(&platform.base_url))
        .collect())
}
