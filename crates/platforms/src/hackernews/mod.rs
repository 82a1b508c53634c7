//! Hacker News: Algolia's search by date, complemented by Firebase's lists of new items.
//!
//! - Algolia (`base_url`): `search_by_date?tags=…&numericFilters=created_at_i>=T` answers newest first,
//!   never more than 1,000 hits whatever the page; a full answer is continued below its oldest second.
//!   The index trails the site by seconds to minutes. Text is HTML; dead and deleted items are not in it.
//! - Firebase (`items_url`, optional): `newstories.json` lists up to 500 ids, newest first, `askstories`
//!   and `showstories` up to 200. `item/<id>.json` of an item that cannot be read yet is `null` with
//!   status 200: such a one is asked for again. Deleted items say so, and have no author.
//! - Comments (`comments`) come from Algolia alone, under their story's title.
//! - Neither needs a key. When one of the two fails, the other still gives its posts.
//!
//! Cost: two requests a poll (one for comments), and one for each item that Algolia does not know yet. A
//! re-check asks for each item singly.

mod algolia;
mod firebase;
mod post;
mod recheck;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use url::Url;

use crate::{
    Adapter, Cursor, Fetch, PollError, PollLimits, Polled, cursor::OVERLAP, reading::Reading,
};

/// The adapter of kind `hackernews`.
pub struct HackerNews {
    /// The platform's name, which makes the posts' ids unique.
    name: String,
    search_url: Url,
    items_url: Option<Url>,
    item_budget: Duration,
    fetch: Arc<dyn Fetch>,
}

/// What can be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    Newest,
    Ask,
    Show,
    Comments,
}

impl List {
    fn parse(what: &str) -> Option<Self> {
        match what {
            "newest" => Some(Self::Newest),
            "ask" => Some(Self::Ask),
            "show" => Some(Self::Show),
            "comments" => Some(Self::Comments),
            _ => None,
        }
    }

    fn tags(self) -> &'static str {
        match self {
            Self::Newest => "(story,poll,job)",
            Self::Ask => "ask_hn",
            Self::Show => "show_hn",
            Self::Comments => "comment",
        }
    }

    /// Firebase's list of it, where there is one.
    fn document(self) -> Option<&'static str> {
        match self {
            Self::Newest => Some("newstories.json"),
            Self::Ask => Some("askstories.json"),
            Self::Show => Some("showstories.json"),
            Self::Comments => None,
        }
    }
}

impl HackerNews {
    #[must_use]
    pub fn new(
        name: String,
        search_url: Url,
        items_url: Option<Url>,
        fetch: Arc<dyn Fetch>,
    ) -> Self {
        Self {
            name,
            search_url,
            items_url,
            item_budget: firebase::BUDGET,
            fetch,
        }
    }
}

#[async_trait]
impl Adapter for HackerNews {
    fn kind(&self) -> &'static str {
        "hackernews"
    }

    fn accepts(&self, what: &str) -> bool {
        accepts(what)
    }

    fn default_interval(&self) -> Duration {
        Duration::from_secs(30)
    }

    async fn poll(
        &self,
        what: &str,
        cursor: Option<&Cursor>,
        limits: &PollLimits,
    ) -> Result<Polled, PollError> {
        let list = List::parse(what).ok_or_else(|| PollError::NotFound(what.to_owned()))?;
        let mut reading = Reading::new(cursor, limits);
        let searched = reading.cursor.searched.or(reading.cursor.high_water);
        let start = match searched.map(|searched| searched.minus(OVERLAP)) {
            // The lists run ahead of the search: what it has not given by now, it may give late.
            Some(by_search) => reading.window_start().map(|start| start.min(by_search)),
            None => reading.window_start(),
        };

        let search = algolia::read(self, list, start, limits);
        let (found, listed) = futures::join!(search, firebase::list(self, list));
        let next_hint = match (&found, &listed) {
            (Err(_), Some(Ok(_))) if !reading.is_first() => {
                found.as_ref().err().and_then(PollError::retry_after)
            }
            (Ok(_), Some(Err(error))) => error.retry_after(),
            _ => None,
        };
        // From here on the next search must read, however far the lists have come.
        reading.cursor.searched = searched.or_else(|| reading.floor());
        match found {
            Ok(found) => {
                reading.gap = found.gap;
                for hit in &found.hits {
                    hit.offer(&self.name, list, &mut reading);
                    let time = reading.sane(hit.time());
                    reading.cursor.searched = reading.cursor.searched.max(time);
                }
            }
            Err(error) if reading.is_first() || !matches!(listed, Some(Ok(_))) => {
                return Err(error);
            }
            Err(error) => {
                tracing::warn!(platform = self.name, %error, "no answer from the search; reading the lists alone");
            }
        }
        match listed {
            Some(Ok(ids)) => firebase::read(self, &ids, &mut reading).await,
            Some(Err(error)) => {
                tracing::warn!(platform = self.name, %error, "no list of items; reading the search alone");
            }
            None => {}
        }
        let mut polled = reading.finish();
        polled.next_hint = next_hint;
        Ok(polled)
    }

    fn recheck_batch(&self) -> usize {
        recheck::BATCH
    }

    async fn recheck(&self, post_ids: &[String]) -> Result<Vec<String>, PollError> {
        recheck::gone(self, post_ids).await
    }
}

/// Whether `what` is a list that can be watched.
pub(crate) fn accepts(what: &str) -> bool {
    List::parse(what).is_some()
}

/// `base` with `path` below it, whether or not it ends in a slash.
pub(crate) fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url
}
