//! Firebase: lists of ids, and single items.

use std::time::Duration;

use domain::Timestamp;
use futures::{StreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{HackerNews, List, post::Parts};
use crate::null;
use crate::{
    FetchLimits, PollError,
    address::below,
    cursor::{MAX_PENDING, Pending, from_seconds},
    reading::{Made, Reading},
};

const AT_ONCE: usize = 8;
/// Maximum time for reading items before the hits of the search are returned; the next poll reads the rest.
pub(super) const BUDGET: Duration = Duration::from_secs(10);
/// Maximum number of new items read in one poll; the rest is still in the list at the next one.
const ITEMS_PER_POLL: usize = 200;
/// Maximum number of pending items retried in one poll; the others wait for a later one.
const PENDING_PER_POLL: usize = 50;
/// Number of items, not yet in the search, that a first poll reads.
const FIRST_ITEMS: usize = 50;
/// Maximum number of ids used from a list.
const MAX_IDS: usize = 1_000;
/// Time after which an unreadable item is given up.
const PENDING_FOR: Duration = Duration::from_mins(15);

#[derive(Debug, Deserialize)]
pub(super) struct Item {
    id: u64,
    #[serde(rename = "type", default)]
    kind: String,
    by: Option<String>,
    time: Option<i64>,
    title: Option<String>,
    text: Option<String>,
    #[serde(default, deserialize_with = "null::or_default")]
    deleted: bool,
    #[serde(default, deserialize_with = "null::or_default")]
    dead: bool,
}

/// The ids of `list`, newest first; `None` if there is no such list or no address for items.
pub(super) async fn list(platform: &HackerNews, list: List) -> Option<Result<Vec<u64>, PollError>> {
    let url = below(platform.items_url.as_ref()?, list.document()?);
    let listed = get::<Vec<Value>>(platform, &url).await;
    // What is no id has no item that could be read.
    let ids = |listed: Vec<Value>| {
        listed
            .iter()
            .filter_map(Value::as_u64)
            .take(MAX_IDS)
            .collect()
    };
    Some(listed.map(ids))
}

/// Offers every listed item that is not known.
pub(super) async fn read(platform: &HackerNews, ids: &[u64], reading: &mut Reading) {
    let unread = choose(ids, reading);
    // In any order, so that a slow item does not delay those after it.
    let items = stream::iter(unread)
        .map(|id| async move { (id, item(platform, id).await) })
        .buffer_unordered(AT_ONCE)
        .take_until(tokio::time::sleep(platform.item_budget))
        .collect::<Vec<_>>()
        .await;
    let is_answered = items.iter().any(|(_, item)| item.is_ok());
    for (id, item) in items {
        match item {
            Ok(Some(item)) => item.offer(&platform.name, reading),
            Ok(None) => wait_for(id, reading),
            // Other items can be read, so this item is broken and not the platform.
            Err(PollError::Malformed(reason)) if is_answered => {
                reading.set_aside(&json!({ "id": id }), &reason);
            }
            // The next poll tries it again: it is still listed and unknown.
            Err(error) => tracing::debug!(id, %error, "an item could not be read"),
        }
    }
}

/// Chooses the items to read, new ones before pending ones; the others count as met.
fn choose(ids: &[u64], reading: &mut Reading) -> Vec<u64> {
    let mut unread = Vec::new();
    if reading.is_first() {
        // Items below the newest one that the search returned are old; items above it are not indexed yet.
        let indexed = ids.iter().filter(|id| reading.knows(&id.to_string())).max();
        let indexed = indexed.copied().unwrap_or(0);
        for id in ids {
            if *id > indexed && unread.len() < FIRST_ITEMS {
                unread.push(*id);
            } else {
                reading.record(&id.to_string(), None);
            }
        }
        return unread;
    }
    let waiting = std::mem::take(&mut reading.cursor.pending);
    for Pending(id, since) in waiting {
        if reading.knows(&id) {
            continue;
        }
        if reading.now.since(since) > PENDING_FOR {
            // It may become visible after all; the search has it then.
            reading.record_hidden(&id);
            continue;
        }
        reading.cursor.pending.push(Pending(id, since));
    }
    let waiting = reading.cursor.pending.iter();
    let waiting: Vec<u64> = waiting.filter_map(|one| one.0.parse().ok()).collect();
    for id in ids {
        if reading.knows(&id.to_string()) {
            reading.record(&id.to_string(), None);
        } else if reading.is_hidden(&id.to_string()) {
            reading.record_hidden(&id.to_string());
        } else if unread.len() < ITEMS_PER_POLL && !waiting.contains(id) {
            unread.push(*id);
        }
    }
    unread.extend(waiting.iter().take(PENDING_PER_POLL));
    let pending = &mut reading.cursor.pending;
    let asked = pending.len().min(PENDING_PER_POLL);
    pending.rotate_left(asked);
    unread
}

/// Adds an item without content to the pending ones.
fn wait_for(id: u64, reading: &mut Reading) {
    let id = id.to_string();
    let pending = &mut reading.cursor.pending;
    if pending.len() < MAX_PENDING && !pending.iter().any(|pending| pending.0 == id) {
        pending.push(Pending(id, reading.now));
    }
}

/// The newest id of all items.
pub(super) async fn newest_id(platform: &HackerNews) -> Result<u64, PollError> {
    let Some(base) = &platform.items_url else {
        return Err(PollError::NotFound("maxitem".to_owned()));
    };
    let newest: u64 = get(platform, &below(base, "maxitem.json")).await?;
    if i64::try_from(newest).is_err() {
        return Err(PollError::Malformed(format!("newest id {newest}")));
    }
    Ok(newest)
}

pub(super) async fn item(platform: &HackerNews, id: u64) -> Result<Option<Item>, PollError> {
    let Some(base) = &platform.items_url else {
        return Ok(None);
    };
    get(platform, &below(base, &format!("item/{id}.json"))).await
}

async fn get<T: serde::de::DeserializeOwned>(
    platform: &HackerNews,
    url: &url::Url,
) -> Result<T, PollError> {
    let limits = FetchLimits::default();
    let answer = platform.fetch.get(url, &[], &limits).await?;
    answer.success(url.path())?.json()
}

impl Item {
    pub(super) fn is_gone(&self) -> bool {
        self.deleted || self.dead
    }

    pub(super) fn time(&self) -> Option<Timestamp> {
        self.time.and_then(from_seconds)
    }

    /// Returns true if the item is of the list of stories or of comments.
    pub(super) fn is_of(&self, list: List) -> bool {
        let is_story = matches!(self.kind.as_str(), "story" | "job" | "poll");
        match list {
            List::Comments => self.kind == "comment",
            List::Newest | List::Ask | List::Show => is_story,
        }
    }

    /// `None` if all its text is gone. A comment has no title of a story here.
    pub(super) fn post(&self, platform: &str, time: Timestamp) -> Made {
        let parts = Parts {
            platform,
            id: self.id,
            author: self.by.as_deref().unwrap_or_default(),
            title: self.title.as_deref().unwrap_or_default(),
            text: self.text.as_deref().unwrap_or_default(),
            is_comment: self.kind == "comment",
            is_job: self.kind == "job",
            is_ask: false,
            is_show: false,
        };
        parts.post(time)
    }

    pub(super) fn offer(&self, platform: &str, reading: &mut Reading) {
        let id = self.id.to_string();
        reading.cursor.pending.retain(|pending| pending.0 != id);
        if self.is_gone() {
            // A dead item may be vouched for; the search has it then.
            reading.record_hidden(&id);
            return;
        }
        let listed = self.is_of(List::Newest);
        reading.offer(&id, self.time(), |time| match self.kind.as_str() {
            "" => Err("no type"),
            _ if listed => self.post(platform, time),
            _ => Ok(None),
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    };

    use async_trait::async_trait;
    use url::Url;

    use super::*;
    use crate::{Adapter, Cursor, Fetch, FetchError, Fetched, PollLimits};

    /// Every item is `null`, except one that can be read and one that never answers.
    #[derive(Default)]
    struct Items {
        listed: Mutex<Vec<u64>>,
        found: Mutex<String>,
        asked: AtomicUsize,
    }

    const READABLE: u64 = 9_001;
    const STUCK: u64 = 9_002;
    const DEAD: u64 = 9_003;

    #[async_trait]
    impl Fetch for Items {
        async fn get(
            &self,
            url: &Url,
            _headers: &[(&str, &str)],
            _limits: &FetchLimits,
        ) -> Result<Fetched, FetchError> {
            let path = url.path();
            let body = if path.contains("search_by_date") {
                format!(r#"{{"hits": [{}]}}"#, self.found.lock().unwrap())
            } else if path.contains("stories") {
                format!("{:?}", self.listed.lock().unwrap())
            } else {
                self.asked.fetch_add(1, Ordering::Relaxed);
                if path.contains(&STUCK.to_string()) {
                    std::future::pending::<()>().await;
                }
                let readable = path.contains(&READABLE.to_string());
                if path.contains(&DEAD.to_string()) {
                    let item = r#"{"id": 9003, "type": "story", "dead": true, "time": 5}"#;
                    return Ok(answer(url, item));
                }
                let item = r#"{"id": 9001, "type": "story", "by": "ana", "title": "new"}"#;
                if readable { item } else { "null" }.to_owned()
            };
            Ok(answer(url, &body))
        }
    }

    fn answer(url: &Url, body: &str) -> Fetched {
        Fetched {
            status: 200,
            headers: Vec::new(),
            body: body.as_bytes().to_vec(),
            final_url: url.clone(),
        }
    }

    #[tokio::test]
    async fn vouched_story_counts_as_new() {
        let items = Arc::new(Items::default());
        let url: Url = "http://hn.example/".parse().unwrap();
        let fetch: Arc<dyn Fetch> = Arc::clone(&items) as _;
        let platform = HackerNews::new("hackernews".into(), url.clone(), Some(url), fetch);
        let limits = PollLimits::default();
        let mut cursor = platform.poll("newest", None, &limits).await.unwrap().cursor;
        *items.listed.lock().unwrap() = vec![DEAD];
        for _ in 0..3 {
            let polled = platform
                .poll("newest", Some(&cursor), &limits)
                .await
                .unwrap();
            assert!(polled.posts.is_empty());
            cursor = Cursor::from_json(&polled.cursor.to_json()).unwrap();
        }
        assert_eq!(items.asked.load(Ordering::Relaxed), 1, "not in each poll");
        let hours_ago = domain::Timestamp::now().minus(Duration::from_hours(5));
        let seconds = crate::cursor::to_seconds(hours_ago);
        *items.found.lock().unwrap() = format!(
            r#"{{"objectID": "9003", "created_at_i": {seconds}, "title": "late", "author": "ana", "_tags": ["story"]}}"#
        );
        let since = domain::Timestamp::now().minus(Duration::from_hours(24));
        let back = cursor.reading_back_to(since);
        let late = platform.poll("newest", Some(&back), &limits).await.unwrap();
        let titles: Vec<_> = late.posts.iter().filter_map(|p| p.title.clone()).collect();
        assert_eq!(titles, ["late"]);
    }

    #[tokio::test]
    async fn story_that_was_null_is_new_when_the_search_has_it() {
        let items = Arc::new(Items::default());
        let url: Url = "http://hn.example/".parse().unwrap();
        let fetch: Arc<dyn Fetch> = Arc::clone(&items) as _;
        let platform = HackerNews::new("hackernews".into(), url.clone(), Some(url), fetch);
        let limits = PollLimits::default();
        let since = domain::Timestamp::now().minus(PENDING_FOR * 2);
        let mut cursor = Cursor::new();
        cursor.pending = vec![Pending("9005".to_owned(), since)];
        *items.listed.lock().unwrap() = vec![9_005];
        let polled = platform.poll("newest", Some(&cursor), &limits).await;
        let polled = polled.unwrap();
        assert!(polled.cursor.pending.is_empty(), "it is given up");
        let seconds = crate::cursor::to_seconds(since);
        *items.found.lock().unwrap() = format!(
            r#"{{"objectID": "9005", "created_at_i": {seconds}, "title": "slow", "author": "ana", "_tags": ["story"]}}"#
        );
        let polled = platform.poll("newest", Some(&polled.cursor), &limits).await;
        let titles = polled.unwrap().posts.into_iter().map(|post| post.title);
        assert_eq!(titles.collect::<Vec<_>>(), [Some("slow".to_owned())]);
    }

    #[tokio::test]
    async fn missing_items_delay_no_others() {
        let items = Arc::new(Items::default());
        let url: Url = "http://hn.example/".parse().unwrap();
        let fetch: Arc<dyn Fetch> = Arc::clone(&items) as _;
        let mut platform = HackerNews::new("hackernews".into(), url.clone(), Some(url), fetch);
        platform.item_budget = Duration::from_millis(200);
        let mut cursor = Cursor::new();
        let since = domain::Timestamp::now();
        let pending = (0..500).map(|id: u64| Pending(id.to_string(), since));
        cursor.pending = pending.collect();
        *items.listed.lock().unwrap() = vec![STUCK, READABLE];

        let limits = PollLimits::default();
        let poll = platform.poll("newest", Some(&cursor), &limits);
        let limit = Duration::from_secs(60);
        let polled = tokio::time::timeout(limit, poll).await.unwrap().unwrap();
        let titles: Vec<_> = polled
            .posts
            .iter()
            .filter_map(|p| p.title.clone())
            .collect();
        assert_eq!(titles, ["new"]);
        assert_eq!(items.asked.load(Ordering::Relaxed), 2 + PENDING_PER_POLL);
        let pending = &polled.cursor.pending;
        assert_eq!(pending.len(), 500);
        assert_eq!(
            pending[0].0,
            PENDING_PER_POLL.to_string(),
            "the next in turn"
        );
    }
}
