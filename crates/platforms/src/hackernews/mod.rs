//! Hacker News: Algolia's search by date, plus Firebase's lists of new items.
//!
//! - Algolia (`base_url`): `search_by_date?tags=…&numericFilters=created_at_i>=T` answers newest first, with at
//!   most 1,000 hits over all pages; after a full response the next query starts below its oldest second. The
//!   index trails the site by seconds to minutes. Text is HTML. Dead and deleted items are not in the index.
//! - Firebase (`items_url`, optional): `newstories.json` lists up to 500 ids, newest first, `askstories` and
//!   `showstories` up to 200. `item/<id>.json` of an item that cannot be read yet is `null` with status 200; it
//!   is requested again later. Deleted items have a mark and no author.
//! - Comments (`comments`) come only from Algolia, with the title of their story.
//! - Neither needs a key. When one of the two fails, the other still supplies its posts.
//!
//! - With Firebase, each id is accounted for ([`ledger`]).
//!
//! Cost: two requests per poll (one for comments), and one for each item that Algolia does not know yet. A
//! re-check takes one request per item.

mod algolia;
mod firebase;
pub(crate) mod kind;
mod ledger;
mod post;
mod recheck;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use url::Url;

use self::algolia::Window;
use crate::{
    Adapter, Cursor, Fetch, IdAccount, PollError, PollLimits, Polled, RecheckResult,
    cursor::{OVERLAP, Unread, to_seconds},
    paging,
    reading::Reading,
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

/// The lists that can be monitored.
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

    /// Firebase's document for the list, if there is one.
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
            // The lists are ahead of the search: it may return later what it has not returned yet.
            Some(by_search) => reading.window_start().map(|start| start.min(by_search)),
            None => reading.window_start(),
        };

        // The part that an earlier poll left comes first.
        let earlier = reading.cursor.unread.take();
        let window = earlier.as_ref().map_or_else(
            || Window {
                start: start.map(to_seconds),
                until: None,
            },
            window_of,
        );
        let search = algolia::read(self, list, window, limits);
        let (found, listed) = futures::join!(search, firebase::list(self, list));
        let next_hint = match (&found, &listed) {
            (Err(_), Some(Ok(_))) if !reading.is_first() => {
                found.as_ref().err().and_then(PollError::retry_after)
            }
            (Ok(_), Some(Err(error))) => error.retry_after(),
            _ => None,
        };
        // The next search must start here, no matter how far the lists have come.
        reading.cursor.searched = searched.or_else(|| reading.floor());
        let (mut left, failure);
        let is_searched = found.is_ok();
        match found {
            Ok(found) => {
                reading.gap = found.gap;
                left = found.left;
                failure = found.failure;
                for (hit, error) in &found.odd {
                    reading.set_aside(hit, error);
                }
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
                left = earlier.as_ref().map(window_of);
                failure = earlier.is_some().then_some(error);
                tracing::warn!(
                    platform = self.name,
                    error = failure.as_ref().map(tracing::field::display),
                    "no answer from the search; reading the lists alone"
                );
            }
        }
        match listed {
            Some(Ok(ids)) => firebase::read(self, &ids, &mut reading).await,
            Some(Err(error)) => {
                tracing::warn!(platform = self.name, %error, "no list of items; reading the search alone");
            }
            None => {}
        }
        if reading.is_overfull() && (left.is_some() || earlier.is_some()) {
            // Some hits were not returned, so the window is searched again.
            left = Some(window);
        }
        let high_water = reading.cursor.high_water;
        reading.partial |= left.is_some() || earlier.is_some();
        reading.cursor.unread = left.map(|left| Unread {
            after: left.start.map(|start| start.to_string()),
            before: left
                .until
                .map(|until| until.to_string())
                .unwrap_or_default(),
            ..earlier.clone().unwrap_or_else(|| Unread {
                high_water,
                first: reading.is_first(),
                ..Unread::default()
            })
        });
        let has_left = left.is_some();
        let mut polled = reading.finish();
        if let Some(earlier) = earlier.filter(|_| !has_left) {
            polled.cursor.floor = polled.cursor.floor.max(earlier.floor);
        }
        polled.more |= has_left && is_searched;
        let pause = failure.as_ref().map(paging::pause_after);
        polled.next_hint = next_hint.max(pause.filter(|_| polled.more));
        polled.throttled = failure.as_ref().and_then(PollError::throttled);
        Ok(polled)
    }

    fn has_late_posts(&self) -> bool {
        true
    }

    fn has_dense_ids(&self, what: &str) -> bool {
        // The other lists are parts of `newest`. Without the items, no one knows why the search lacks one.
        let is_whole = matches!(List::parse(what), Some(List::Newest | List::Comments));
        is_whole && self.items_url.is_some()
    }

    async fn account(&self, what: &str, polled: &mut Polled, ask: bool) -> IdAccount {
        match List::parse(what) {
            Some(list) => ledger::account(self, list, polled, ask).await,
            None => IdAccount::default(),
        }
    }

    fn recheck_batch(&self) -> usize {
        recheck::BATCH
    }

    async fn recheck(&self, post_ids: &[String]) -> Result<RecheckResult, PollError> {
        recheck::check(self, post_ids).await
    }
}

/// The window that an earlier poll left.
fn window_of(unread: &Unread) -> Window {
    Window {
        start: unread.after.as_deref().and_then(|start| start.parse().ok()),
        until: unread.before.parse().ok(),
    }
}

/// Returns true if `what` is a list that can be monitored.
pub(crate) fn accepts(what: &str) -> bool {
    List::parse(what).is_some()
}
