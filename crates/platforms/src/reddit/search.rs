//! Subreddits that a search finds.

use serde::Deserialize;

use super::{Reddit, accepts, listing::Listing};
use crate::{Community, PollError, text};

pub(super) const WHAT: &str = "subreddits/search";

#[derive(Deserialize)]
struct Subreddit {
    display_name: String,
    title: Option<String>,
    /// Markdown.
    public_description: Option<String>,
    subscribers: Option<u64>,
    subreddit_type: Option<String>,
    quarantine: Option<bool>,
}

pub(super) async fn communities(
    platform: &Reddit,
    words: &str,
    limit: usize,
) -> Result<Vec<Community>, PollError> {
    let mut url = platform.below(WHAT);
    url.query_pairs_mut()
        .append_pair("q", words)
        .append_pair("limit", &limit.clamp(1, 100).to_string());
    let listing: Listing = platform.get(&url, WHAT).await?;
    let found = listing.data.children.iter().filter_map(|child| {
        let data = child.get("data").filter(|_| child["kind"] == "t5")?;
        Subreddit::deserialize(data).ok()?.community()
    });
    Ok(found.take(limit).collect())
}

impl Subreddit {
    /// `None` if not everyone may read it.
    fn community(self) -> Option<Community> {
        let what = format!("r/{}", self.display_name);
        let open = matches!(
            self.subreddit_type.as_deref(),
            None | Some("public" | "restricted" | "archived")
        );
        if !open || self.quarantine == Some(true) || !accepts(&what) {
            return None;
        }
        let title = text::line(self.title.as_deref().unwrap_or_default());
        Some(Community {
            url: format!("https://www.reddit.com/{what}/"),
            what,
            name: if title.is_empty() {
                self.display_name
            } else {
                title
            },
            about: text::from_markdown(self.public_description.as_deref().unwrap_or_default()),
            members: self.subscribers,
        })
    }
}
