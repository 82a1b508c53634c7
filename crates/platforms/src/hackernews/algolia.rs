//! Algolia: searches by windows of creation time, newest first.

use std::time::Instant;

use domain::Timestamp;
use serde::Deserialize;

use super::{HackerNews, List, post::Parts};
use crate::{
    FetchLimits, Gap, PollError, PollLimits,
    address::below,
    cursor::from_seconds,
    reading::{Met, Reading},
};

/// Maximum number of hits for one query, over all its pages.
const PER_QUERY: usize = 1_000;
/// Maximum number of queries in one poll, because all their hits are in memory at once.
const MAX_QUERIES: usize = 40;
/// A thousand long posts, each also highlighted.
const MAX_BYTES: usize = 24 * 1024 * 1024;

#[derive(Deserialize)]
struct Answer {
    hits: Vec<serde_json::Value>,
    #[serde(rename = "hitsPerPage")]
    per_page: Option<usize>,
}

/// One hit. A missing or null field reads as empty.
#[derive(Debug, Deserialize)]
pub(super) struct Hit {
    #[serde(rename = "objectID")]
    id: String,
    created_at_i: Option<i64>,
    title: Option<String>,
    author: Option<String>,
    story_text: Option<String>,
    story_title: Option<String>,
    comment_text: Option<String>,
    #[serde(rename = "_tags", default)]
    tags: Vec<String>,
}

/// The period that a poll searches, in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Window {
    pub(super) start: Option<i64>,
    /// The last second; `None` without an upper bound.
    pub(super) until: Option<i64>,
}

pub(super) struct Found {
    pub(super) hits: Vec<Hit>,
    /// Hits that cannot be read, and why.
    pub(super) odd: Vec<(serde_json::Value, serde_json::Error)>,
    pub(super) gap: Option<Gap>,
    /// The part of the window that is still to be read.
    pub(super) left: Option<Window>,
    /// The reason, unless a limit was reached.
    pub(super) failure: Option<PollError>,
}

/// Reads everything created in `window`, within the limits.
pub(super) async fn read(
    platform: &HackerNews,
    list: List,
    window: Window,
    limits: &PollLimits,
) -> Result<Found, PollError> {
    let mut found = Found {
        hits: Vec::new(),
        odd: Vec::new(),
        gap: None,
        left: None,
        failure: None,
    };
    let begin = Instant::now();
    let Window { start, mut until } = window;
    for query in 0..limits.max_pages.clamp(1, MAX_QUERIES) {
        let is_full = found.hits.len() + PER_QUERY > limits.max_posts;
        if query > 0 && start.is_some() && (is_full || begin.elapsed() >= limits.max_time) {
            break;
        }
        let answer = match ask(platform, list, Window { start, until }).await {
            Ok(answer) => answer,
            Err(error) if query > 0 => {
                found.failure = Some(error);
                break;
            }
            Err(error) => return Err(error),
        };
        let count = answer.hits.len();
        let oldest = answer
            .hits
            .iter()
            .filter_map(|hit| hit.get("created_at_i")?.as_i64())
            .min();
        for hit in answer.hits {
            match Hit::deserialize(&hit) {
                Ok(hit) => found.hits.push(hit),
                Err(error) => found.odd.push((hit, error)),
            }
        }
        let full = count >= answer.per_page.unwrap_or(PER_QUERY).clamp(1, PER_QUERY);
        let Some(oldest) = oldest.filter(|_| full) else {
            return Ok(found);
        };
        if start.is_none() && found.hits.len() >= limits.max_posts {
            return Ok(found);
        }
        // One second filled the whole response: continue below it, because no query returns more.
        if until == Some(oldest) {
            found.gap = gap(Some(oldest), Some(oldest));
            until = Some(oldest.saturating_sub(1));
        } else {
            until = Some(oldest);
        }
    }
    found.left = start.is_some().then_some(Window { start, until });
    Ok(found)
}

async fn ask(platform: &HackerNews, list: List, window: Window) -> Result<Answer, PollError> {
    let mut url = below(&platform.search_url, "search_by_date");
    let mut filters = Vec::new();
    filters.extend(window.start.map(|start| format!("created_at_i>={start}")));
    filters.extend(window.until.map(|until| format!("created_at_i<={until}")));
    url.query_pairs_mut()
        .append_pair("tags", list.tags())
        .append_pair("hitsPerPage", &PER_QUERY.to_string())
        .append_pair("attributesToHighlight", "none")
        .append_pair("numericFilters", &filters.join(","));
    let bounds = FetchLimits {
        max_bytes: MAX_BYTES,
        ..FetchLimits::default()
    };
    let answer = platform.fetch.get(&url, &[], &bounds).await?;
    answer.success(list.tags())?.json()
}

fn gap(from: Option<i64>, to: Option<i64>) -> Option<Gap> {
    Some(Gap {
        from: from.and_then(from_seconds),
        to: to.and_then(from_seconds),
        reason: "more posts in the search than can be read",
    })
}

impl Hit {
    pub(super) fn time(&self) -> Option<Timestamp> {
        self.created_at_i.and_then(from_seconds)
    }

    /// The id, if the hit is of that list.
    pub(super) fn id_of(&self, list: List) -> Option<u64> {
        let is_comment = self.tags.iter().any(|tag| tag == "comment");
        let id = self.id.parse().ok()?;
        (is_comment == (list == List::Comments)).then_some(id)
    }

    pub(super) fn offer(&self, platform: &str, list: List, reading: &mut Reading) -> Met {
        let Ok(id) = self.id.parse::<u64>() else {
            return Met::Old;
        };
        let tagged = |tag: &str| self.tags.iter().any(|own| own == tag);
        let is_comment = tagged("comment");
        // Skips hits of another kind.
        if is_comment != (list == List::Comments) {
            return Met::Old;
        }
        let (title, text) = if is_comment {
            (&self.story_title, &self.comment_text)
        } else {
            (&self.title, &self.story_text)
        };
        let parts = Parts {
            platform,
            id,
            author: self.author.as_deref().unwrap_or_default(),
            title: title.as_deref().unwrap_or_default(),
            text: text.as_deref().unwrap_or_default(),
            is_comment,
            is_job: tagged("job"),
            is_ask: tagged("ask_hn"),
            is_show: tagged("show_hn"),
        };
        reading.offer(&self.id, self.time(), |time| parts.post(time))
    }
}
