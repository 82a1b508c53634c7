//! Feeds: RSS 0.91 to 2.0, RSS 1.0 (RDF), Atom and JSON Feed, detected by their content.
//!
//! - Requests are conditional (`If-None-Match`, `If-Modified-Since`): an unchanged feed costs a 304.
//! - A feed is a window of 10 to 100 entries in no particular order. If no entry is known any more, or only a
//!   few pinned ones and none of the newest are, some entries may have been missed.
//! - An entry dated more than [`LATE`] before the previous poll is old, so that a feed that gives all its
//!   entries new ids does not deliver them again. This check does not work for entries without a date.
//! - On a feed's first poll, entries are old unless their date says otherwise.
//! - The id is the entry's URI if it names the feed's host. Any other id is scoped to the feed, so that a feed
//!   cannot present its entries as the posts of another site. Ids contain a keyed hash of the feed's address,
//!   because the address may contain a token; everywhere else the address is masked.
//! - A document type with its own declarations is refused, because it can contain an entity bomb. A document
//!   that nests deeper than real feeds do is refused too.
//!
//! With a `base_url`, a platform is that one feed, `newest`. Without one, it is every feed that customers name
//! by its address, fetched through the guarded client.
//!
//! Cost: one request per poll. Parsing happens off the runtime's threads.

mod depth;
mod document;
mod entry;
pub(crate) mod kind;

use std::{collections::HashSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use domain::{Timestamp, web_url};
use url::Url;

pub use document::parse;

use crate::{
    Adapter, AddressKey, Cursor, Fetch, FetchLimits, Fetched, Gap, PollError, PollLimits, Polled,
    Source,
    cursor::{MAX_SEEN, from_seconds, key, to_seconds},
    reading::{Met, Reading},
};

const ACCEPT: &str = "application/atom+xml, application/rss+xml, application/feed+json, \
                      application/xml;q=0.9, application/json;q=0.8, */*;q=0.5";
/// Longest wait that a feed may ask for.
const MAX_HINT: Duration = Duration::from_hours(24);
/// How much older than its publication an entry may be dated: feeds date by day, in different time zones, and
/// drafts by their first edit.
const LATE: Duration = Duration::from_hours(48);
/// Maximum number of entries that a feed may pin.
const MAX_PINNED: usize = 3;
/// Number of newest known entries to look for.
const NEWEST: usize = 5;
const MAX_URL_BYTES: usize = 2_048;

/// The adapter of kind `feed`.
pub struct Feeds {
    name: String,
    source: Source,
    base_url: Option<Url>,
    fetch: Arc<dyn Fetch>,
    address_key: AddressKey,
}

impl Feeds {
    #[must_use]
    pub fn new(name: String, source: Source, base_url: Option<Url>, fetch: Arc<dyn Fetch>) -> Self {
        Self {
            name,
            source,
            base_url,
            fetch,
            address_key: AddressKey::random(),
        }
    }

    /// Replaces the random key that hashes feed addresses in ids.
    #[must_use]
    pub fn with_address_key(self, address_key: AddressKey) -> Self {
        Self {
            address_key,
            ..self
        }
    }

    /// The address of the feed `what`.
    fn address(&self, what: &str) -> Option<Url> {
        address(self.base_url.as_ref(), what)
    }
}

/// The address of the feed `what` on a platform with this `base_url`.
pub(crate) fn address(base_url: Option<&Url>, what: &str) -> Option<Url> {
    if let Some(base_url) = base_url {
        return (what == "newest").then(|| base_url.clone());
    }
    let url = Url::parse(what)
        .ok()
        .filter(|_| what.len() <= MAX_URL_BYTES)?;
    let plain = url.username().is_empty() && url.password().is_none();
    (plain && matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}

#[async_trait]
impl Adapter for Feeds {
    fn kind(&self) -> &'static str {
        "feed"
    }

    fn accepts(&self, what: &str) -> bool {
        self.address(what).is_some()
    }

    fn default_interval(&self) -> Duration {
        Duration::from_mins(5)
    }

    async fn poll(
        &self,
        what: &str,
        cursor: Option<&Cursor>,
        limits: &PollLimits,
    ) -> Result<Polled, PollError> {
        let url = self
            .address(what)
            .ok_or_else(|| PollError::NotFound("not a web address".to_owned()))?;
        let mut headers = vec![("accept", ACCEPT)];
        if let Some(cursor) = cursor {
            let etag = cursor.etag.as_deref();
            headers.extend(etag.map(|etag| ("if-none-match", etag)));
            let modified = cursor.last_modified.as_deref();
            headers.extend(modified.map(|modified| ("if-modified-since", modified)));
        }
        let answer = self
            .fetch
            .get(&url, &headers, &FetchLimits::default())
            .await?;
        if let (304, Some(cursor)) = (answer.status, cursor) {
            let mut cursor = cursor.clone();
            cursor.floor = floor_at(Timestamp::now());
            return Ok(Polled {
                deleted: Vec::new(),
                unreadable: Vec::new(),
                posts: Vec::new(),
                cursor,
                gap: None,
                more: false,
                not_modified: true,
                next_hint: max_age(&answer),
                throttled: None,
            });
        }
        let mut answer = answer.success(&web_url::masked(&url))?;
        let (body, final_url) = (std::mem::take(&mut answer.body), answer.final_url.clone());
        let parsed = tokio::task::spawn_blocking(move || document::read(&body, &final_url));
        // A panic of the parser concerns only this document.
        let (feed, odd) = parsed
            .await
            .map_err(|error| PollError::Malformed(error.to_string()))??;

        let origin = entry::Origin {
            platform: &self.name,
            // The platform has no other feed, so ids need no scope.
            scope: self.base_url.is_none().then_some((&self.address_key, what)),
            post_type: self.source.post_type(),
            url: &answer.final_url,
            feed_url: &url,
        };
        let mut reading = Reading::new(cursor, limits);
        let now = reading.now;
        if !reading.is_first() {
            // A clock that was ahead may have put it into the future.
            reading.cursor.floor = reading.floor().min(floor_at(now));
        }
        let floor = reading.floor();
        for (item, error) in &odd {
            reading.set_aside(item, error);
        }
        let gap = offer(&origin, &feed, &mut reading);
        let mut polled = reading.finish();
        // While there is more to return, the server must send the same document again.
        let whole = Some(&answer).filter(|_| !polled.more);
        polled.cursor.etag = whole.and_then(|answer| validator(answer, "etag"));
        polled.cursor.last_modified = whole.and_then(|answer| validator(answer, "last-modified"));
        // Feeds have no order: entries that drop out of the seen set say nothing about the times of others.
        // Entries become old only by this poll's time, and only after all of them have been returned.
        polled.cursor.floor = if polled.more {
            floor
        } else {
            floor.max(floor_at(now))
        };
        polled.gap = polled.gap.or(gap);
        let ttl = feed.ttl.map(|minutes| Duration::from_mins(minutes.into()));
        polled.next_hint = max_age(&answer).max(ttl).map(|hint| hint.min(MAX_HINT));
        Ok(polled)
    }
}

/// The floor after a poll at `now`, in steps of an hour, so that few polls change the cursor.
fn floor_at(now: Timestamp) -> Option<Timestamp> {
    const STEP: i64 = 3_600;
    let hour = to_seconds(now.minus(LATE)).div_euclid(STEP) * STEP;
    from_seconds(hour)
}

/// Offers the feed's entries, oldest first, and reports a gap if none was known.
fn offer(
    origin: &entry::Origin<'_>,
    feed: &feed_rs::model::Feed,
    reading: &mut Reading,
) -> Option<Gap> {
    let about = entry::About::new(origin, feed);
    let mut entries: Vec<_> = feed
        .entries
        .iter()
        .map(|entry| (entry::time(entry), entry))
        .collect();
    entries.sort_by_key(|(time, _)| *time);
    let entries = &entries[entries.len().saturating_sub(MAX_SEEN)..];
    let newest = newest_seen(reading);
    let (mut known, mut new, mut joins) = (0, 0, false);
    for (time, entry) in entries {
        let native = entry::native_id(entry);
        known += usize::from(reading.knew(&native));
        joins |= newest.contains(&key(&native));
        let time = reading.sane(*time);
        if time.is_none() && reading.is_first() && reading.floor().is_some() {
            reading.note(&native, None);
            continue;
        }
        let met = reading.offer(&native, time, |time| about.post(entry, &native, time));
        new += usize::from(met == Met::New);
    }
    let emptied = known == 0 && !entries.is_empty() && !reading.cursor.seen.is_empty();
    // Pinned entries do not prove that nothing was missed before the new ones.
    let only_pinned = new > 0 && known <= MAX_PINNED && !joins && !newest.is_empty();
    (emptied || only_pinned).then(|| Gap {
        from: None,
        to: entries.iter().find_map(|(time, _)| *time),
        reason: "none of the feed's newest entries was known",
    })
}

/// The newest known entries. If the window follows the last one without a gap, it contains some of them.
fn newest_seen(reading: &Reading) -> HashSet<String> {
    let seen = reading.cursor.seen.iter();
    let mut dated: Vec<_> = seen.filter_map(|seen| Some((seen.1?, &seen.0))).collect();
    dated.sort_unstable_by(|a, b| b.cmp(a));
    let count = dated.len().div_ceil(2).min(NEWEST);
    dated
        .into_iter()
        .take(count)
        .map(|(_, key)| key.clone())
        .collect()
}

/// A header that the next request returns unchanged.
fn validator(answer: &Fetched, name: &str) -> Option<String> {
    let sane = |value: &&str| {
        (1..=512).contains(&value.len()) && value.bytes().all(|b| (b' '..=b'~').contains(&b))
    };
    answer.header(name).filter(sane).map(str::to_owned)
}

fn max_age(answer: &Fetched) -> Option<Duration> {
    let directives = answer.header("cache-control")?.split(',');
    let seconds = directives
        .filter_map(|directive| directive.trim().strip_prefix("max-age="))
        .find_map(|seconds| seconds.trim_matches('"').parse().ok())?;
    Some(Duration::from_secs(seconds).min(MAX_HINT)).filter(|age| !age.is_zero())
}
