//! Mastodon and servers with the same API: the timelines of hashtags, and the public one.
//!
//! - `timelines/tag/{tag}` and `timelines/public`, 40 statuses a page, newest first. `min_id` returns the
//!   statuses just after an id, so reading goes forward and can always resume. The `Link` header names the next
//!   page, and is followed only on the same host. A page may be short, so only an empty one is the end.
//! - Ids are decimal and sort by time on one instance, and mean nothing on another. A status from another
//!   instance gets an id according to its time, so it may appear late and further back. Each poll starts
//!   [`OVERLAP_ITEMS`] statuses or [`OVERLAP`] before the newest. `uri` is the same everywhere.
//! - Some timelines are disabled, or only for users ([`instance`]); a token is optional.
//! - Boosts are skipped: the boosted status is in the timeline itself. Posts of authors who refuse indexing are
//!   skipped too. An edit keeps its id and is the same post.
//! - 300 requests in five minutes, reported by `X-RateLimit-*` with an RFC 3339 time ([`left`]).
//! - Deletions are found by a re-check ([`recheck`]), hashtags by [`search`].
//!
//! Cost: two requests while nothing is new, one more for each forty statuses.

mod instance;
pub(crate) mod kind;
mod recheck;
mod search;
mod status;

use std::{
    cmp::Ordering,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use domain::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use url::Url;

use self::{
    instance::{Access, Part},
    status::Status,
};
use crate::{
    Adapter, Community, Cursor, Fetch, FetchLimits, Fetched, Gap, MAX_PAUSE, PollError, PollLimits,
    Polled, RecheckResult,
    address::below,
    budget::Left,
    cursor::{HASH_BYTES, OVERLAP, OVERLAP_ITEMS, Seen, Unread, from_seconds},
    paging,
    reading::{Met, Reading},
};

const PER_PAGE: usize = 40;
const MAX_TAG_CHARS: usize = 100;
const MAX_ID_BYTES: usize = 32;
/// The access settings of an instance change rarely.
const ACCESS_FOR: Duration = Duration::from_hours(1);

/// The adapter of kind `mastodon`: one instance.
pub struct Mastodon {
    base_url: Url,
    token: Option<SecretString>,
    fetch: Arc<dyn Fetch>,
    access: Mutex<Option<(Instant, Access)>>,
}

/// A feed of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timeline<'a> {
    Public,
    Tag(&'a str),
}

impl<'a> Timeline<'a> {
    fn read(what: &'a str) -> Option<Self> {
        let tag = what.strip_prefix("tag/").filter(|tag| is_tag(tag));
        match what {
            "public" => Some(Self::Public),
            _ => tag.map(Self::Tag),
        }
    }
}

/// A page of a timeline.
struct Page {
    statuses: Vec<Value>,
    /// The pages after this one: towards newer statuses, and towards older ones.
    newer: Option<Url>,
    older: Option<Url>,
}

impl Mastodon {
    pub fn new(base_url: Url, token: Option<SecretString>, fetch: Arc<dyn Fetch>) -> Self {
        Self {
            base_url,
            token,
            fetch,
            access: Mutex::default(),
        }
    }

    async fn get(&self, url: &Url) -> Result<Fetched, PollError> {
        let bearer = self
            .token
            .as_ref()
            .map(|token| format!("Bearer {}", token.expose_secret()));
        let header = bearer.as_deref().map(|bearer| ("authorization", bearer));
        let answer = self
            .fetch
            .get(url, header.as_slice(), &FetchLimits::default())
            .await?;
        if answer.status == 429 && answer.retry_after().is_none() {
            let retry_after = left(&answer).map(|left| left.reset_in);
            return Err(PollError::Throttled { retry_after });
        }
        Ok(answer)
    }

    /// The part of the timeline that the instance shows.
    async fn part(&self, timeline: &Timeline<'_>) -> Result<Part, PollError> {
        let known = *self.access.lock().unwrap_or_else(PoisonError::into_inner);
        let access = match known.filter(|(at, _)| at.elapsed() < ACCESS_FOR) {
            Some((_, access)) => access,
            None => {
                let answer = self.get(&below(&self.base_url, "api/v2/instance")).await?;
                // A response of another kind comes from a server without this endpoint.
                let access = match answer.status {
                    200..=299 => answer
                        .json::<Value>()
                        .as_ref()
                        .map(Access::read)
                        .unwrap_or_default(),
                    // The timeline may answer nevertheless. The next poll asks again.
                    500.. => {
                        let last = known.map(|(_, access)| access).unwrap_or_default();
                        return last.of(timeline, self.token.is_some());
                    }
                    _ => Access::default(),
                };
                let mut known = self.access.lock().unwrap_or_else(PoisonError::into_inner);
                *known = Some((Instant::now(), access));
                access
            }
        };
        access.of(timeline, self.token.is_some())
    }

    fn address(&self, timeline: &Timeline<'_>, part: Part) -> Url {
        let mut url = below(&self.base_url, "api/v1/timelines/public");
        if let Timeline::Tag(tag) = timeline {
            url = below(&self.base_url, "api/v1/timelines/tag");
            if let Ok(mut path) = url.path_segments_mut() {
                path.push(tag);
            }
        }
        let mut query = url.query_pairs_mut();
        query.append_pair("limit", &PER_PAGE.to_string());
        match part {
            Part::Whole => {}
            Part::Local => {
                query.append_pair("local", "true");
            }
            Part::Remote => {
                query.append_pair("remote", "true");
            }
        }
        drop(query);
        url
    }

    async fn page(&self, url: &Url, what: &str) -> Result<Page, PollError> {
        let answer = self.get(url).await?.success(what)?;
        let links = answer.header("link").unwrap_or_default();
        // Some servers exchange the names of the two.
        let linked = ["prev", "next"].map(|rel| self.link(links, rel, url));
        let goes = |url: &Url, parameters: &[&str]| {
            let mut query = url.query_pairs();
            query.any(|(name, _)| parameters.contains(&&*name))
        };
        let (newer, older) = (&["min_id", "since_id"][..], &["max_id"][..]);
        let that_goes = |named: usize, wanted: &[&str], other: &[&str]| {
            let is_wanted = |url: &&Url| goes(url, wanted);
            let found = linked.iter().flatten().find(is_wanted);
            found
                .or(linked[named].as_ref().filter(|url| !goes(url, other)))
                .cloned()
        };
        Ok(Page {
            statuses: answer.json()?,
            newer: that_goes(0, newer, older),
            older: that_goes(1, older, newer),
        })
    }

    /// The address that `Link` gives for `rel`, if it is on this instance.
    fn link(&self, header: &str, rel: &str, from: &Url) -> Option<Url> {
        let relation = format!("rel=\"{rel}\"");
        let parts = header.split(',').filter(|part| part.contains(&relation));
        let addresses = parts.filter_map(|part| part.split_once('<')?.1.split_once('>'));
        let url = addresses
            .map(|(address, _)| from.join(address.trim()))
            .next()?
            .ok()?;
        let same = |a: &Url, b: &Url| {
            (a.scheme(), a.host(), a.port_or_known_default())
                == (b.scheme(), b.host(), b.port_or_known_default())
        };
        (same(&url, &self.base_url) && url.path() == from.path()).then_some(url)
    }
}

/// Ids and times of the statuses that a poll has met.
type Ids = Vec<(String, Option<Timestamp>)>;

#[async_trait]
impl Adapter for Mastodon {
    async fn poll(
        &self,
        what: &str,
        cursor: Option<&Cursor>,
        limits: &PollLimits,
    ) -> Result<Polled, PollError> {
        let timeline = Timeline::read(what).ok_or_else(|| PollError::NotFound(what.to_owned()))?;
        let part = self.part(&timeline).await?;
        let start = self.address(&timeline, part);
        // One page over the limit is returned whole: nothing that was read is left to the next poll.
        let roomy = PollLimits {
            max_posts: limits.max_posts.saturating_add(PER_PAGE * 2),
            ..limits.clone()
        };
        let mut reading = Reading::new(cursor, &roomy);
        let earlier = reading.cursor.unread.take().map(|unread| unread.before);
        let begin = Instant::now();
        let mut ids = Ids::new();
        let mut pages = 0;
        let mut anchor = cursor.and_then(|cursor| cursor.anchor.clone());
        if anchor.is_none() {
            let newest = self.page(&start, what).await?;
            pages += 1;
            // There was nothing at the first poll: everything there now came later.
            let since = match cursor {
                None => limits.since,
                Some(_) => reading.floor().or(Some(Timestamp::UNIX_EPOCH)),
            };
            anchor = since.and_then(|since| id_at(&newest.statuses, since));
            if anchor.is_none() {
                let back = (since, limits);
                self.read_back(&newest, back, what, &mut reading, &mut ids)
                    .await?;
                let mut polled = finish(reading, None, ids, None);
                polled.notice = polled.notice.or(part.notice());
                return Ok(polled);
            }
        }
        let from = earlier.clone().or(anchor.clone()).unwrap_or_default();
        let mut last = from.clone();
        let mut url = with(&start, "min_id", &from);
        let (mut new, mut forward) = (0, 0);
        let mut failure = None;
        let more = loop {
            let is_late = forward > 0 && begin.elapsed() >= limits.max_time;
            let is_full = new >= limits.max_posts || reading.is_large();
            if pages >= limits.max_pages || is_full || is_late {
                break true;
            }
            let page = match self.page(&url, what).await {
                Ok(page) => page,
                // The statuses read so far are in order and without a gap: the next poll continues after them, or
                // where the newest page has shown that the first reading begins.
                Err(error) if pages > 0 => {
                    tracing::debug!(%error, "a reading ended early");
                    failure = Some(error);
                    break true;
                }
                Err(error) => return Err(error),
            };
            (pages, forward) = (pages + 1, forward + 1);
            let new_here = self.offer(&page, &mut reading, &mut ids);
            new += new_here;
            let newest = page.statuses.iter().filter_map(|one| one["id"].as_str());
            let newest = newest.filter(|id| is_id(id)).max_by(|a, b| by_age(a, b));
            // A page that does not advance would be read for ever.
            let Some(newest) = newest.filter(|id| by_age(id, &last).is_gt()) else {
                if new_here > 0 {
                    reading.stalled = true;
                    reading.gap = Some(Gap {
                        from: reading.floor(),
                        to: None,
                        reason: "the pages of the timeline do not advance",
                    });
                }
                break false;
            };
            newest.clone_into(&mut last);
            url = page.newer.unwrap_or_else(|| with(&start, "min_id", &last));
        };
        if more || earlier.is_some() {
            // This poll did not meet all the statuses that the next one starts before.
            reading.partial = true;
            ids.extend(reading.cursor.seen.iter().filter_map(known_id));
        }
        let mut polled = finish(reading, anchor, ids, more.then_some(last));
        polled.notice = polled.notice.or(part.notice());
        polled.next_hint = failure.as_ref().map(paging::pause_after);
        polled.throttled = failure.as_ref().and_then(PollError::throttled);
        Ok(polled)
    }

    async fn communities(&self, words: &str, limit: usize) -> Result<Vec<Community>, PollError> {
        search::communities(self, words, limit).await
    }

    fn recheck_batch(&self) -> usize {
        recheck::BATCH
    }

    async fn recheck(&self, post_ids: &[String]) -> Result<RecheckResult, PollError> {
        recheck::gone(self, post_ids).await.map(Into::into)
    }
}

impl Mastodon {
    /// Offers a page's statuses. Returns how many are new.
    fn offer(&self, page: &Page, reading: &mut Reading, ids: &mut Ids) -> usize {
        let mut new = 0;
        for value in &page.statuses {
            let status = match Status::read(value) {
                Ok(status) => status,
                Err(error) => {
                    reading.set_aside(value, &error);
                    continue;
                }
            };
            let time = status.time();
            let met = reading.offer(&status.id, time, |time| status.post(&self.base_url, time));
            new += usize::from(met == Met::New);
            ids.push((status.id, time));
        }
        new
    }

    /// The first reading of an instance whose ids do not contain times: the newest statuses, as far back as
    /// `since`, or one page.
    async fn read_back(
        &self,
        newest: &Page,
        (since, limits): (Option<Timestamp>, &PollLimits),
        what: &str,
        reading: &mut Reading,
        ids: &mut Ids,
    ) -> Result<(), PollError> {
        let begin = Instant::now();
        self.offer(newest, reading, ids);
        let Some(since) = since else {
            return Ok(());
        };
        let recent = |page: &Page| {
            let statuses = page
                .statuses
                .iter()
                .filter_map(|one| Status::read(one).ok());
            let mut times = statuses.filter_map(|status| status.time());
            times.any(|time| time >= since)
        };
        let mut next = newest.older.clone().filter(|_| recent(newest));
        for _ in 1..limits.max_pages {
            let Some(url) = next.take().filter(|_| ids.len() < limits.max_posts) else {
                break;
            };
            if begin.elapsed() >= limits.max_time {
                // Such ids give no position to continue at.
                reading.gap = Some(Gap {
                    from: Some(since),
                    to: ids.iter().filter_map(|(_, time)| *time).min(),
                    reason: "a first reading that takes too long",
                });
                break;
            }
            let page = self.page(&url, what).await?;
            self.offer(&page, reading, ids);
            next = page
                .older
                .clone()
                .filter(|older| *older != url && recent(&page));
        }
        Ok(())
    }
}

/// A status that an earlier poll met, unless its id is too long to be stored unchanged.
fn known_id(seen: &Seen) -> Option<(String, Option<Timestamp>)> {
    let is_plain = seen.0.len() < HASH_BYTES && is_id(&seen.0);
    is_plain.then(|| (seen.0.clone(), seen.1.and_then(from_seconds)))
}

/// Sets where the next reading starts: after `last` if this one ended early, else so far before the newest
/// status that late ones are found.
fn finish(reading: Reading, anchor: Option<String>, mut ids: Ids, last: Option<String>) -> Polled {
    ids.sort_by(|a, b| by_age(&a.0, &b.0));
    ids.dedup_by(|a, b| a.0 == b.0);
    let by_items = ids.len().checked_sub(OVERLAP_ITEMS + 1);
    let newest = ids
        .iter()
        .filter_map(|(_, time)| *time)
        .max()
        .min(Some(reading.now));
    let window = newest.map(|time| time.minus(OVERLAP));
    // The first status in the window starts the overlap.
    let in_window =
        |(_, time): &(String, Option<Timestamp>)| time.is_none_or(|time| Some(time) >= window);
    let by_time = ids
        .iter()
        .position(in_window)
        .and_then(|at| at.checked_sub(1));
    let next = by_items.zip(by_time).map(|(items, time)| items.min(time));
    let next = next.and_then(|at| ids.get(at)).map(|(id, _)| id.clone());
    // Too few were met: all of them are read again. If there were no ids before, the oldest is read last.
    let oldest = || ids.first().map(|(id, _)| id.clone());
    let unread = reading.cursor.unread.as_ref();
    let first = reading.is_first() || unread.is_some_and(|unread| unread.first);
    let mut polled = reading.finish();
    if let Some(before) = last {
        polled.cursor.anchor = anchor;
        polled.cursor.unread = Some(Unread {
            before,
            first,
            ..Unread::default()
        });
        polled.more = true;
    } else {
        polled.cursor.anchor = next.or(anchor).or_else(oldest);
    }
    polled
}

/// Remainder of the limit, according to the headers.
pub(crate) fn left(answer: &Fetched) -> Option<Left> {
    let requests = answer
        .header("x-ratelimit-remaining")?
        .trim()
        .parse()
        .ok()?;
    let reset: Timestamp = answer.header("x-ratelimit-reset")?.trim().parse().ok()?;
    Some(Left {
        requests,
        reset_in: reset.since(Timestamp::now()).min(MAX_PAUSE),
    })
}

/// Returns true if `what` is the public timeline or a hashtag's.
pub(crate) fn accepts(what: &str) -> bool {
    Timeline::read(what).is_some()
}

/// Letters, digits and underscores of any script, and not only digits.
fn is_tag(tag: &str) -> bool {
    (1..=MAX_TAG_CHARS).contains(&tag.chars().count())
        && tag
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '·' | '・' | '\u{200c}'))
        && tag.chars().any(|c| !c.is_numeric())
}

fn is_id(id: &str) -> bool {
    (1..=MAX_ID_BYTES).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// Ids sort by length, then alphabetically.
fn by_age(a: &str, b: &str) -> Ordering {
    (a.len(), a).cmp(&(b.len(), b))
}

/// The smallest id of a status at `time`, if these statuses show that the upper 48 bits of ids contain the
/// time.
fn id_at(statuses: &[Value], time: Timestamp) -> Option<String> {
    let status = statuses.iter().find_map(|one| Status::read(one).ok())?;
    let id: i64 = status.id.parse().ok()?;
    let told = Timestamp::from_micros((id >> 16).checked_mul(1_000)?)?;
    let own = status.time()?;
    let apart = told.since(own).max(own.since(told));
    let millis = time.micros().div_euclid(1_000);
    (apart < Duration::from_hours(24)).then(|| (millis << 16).to_string())
}

fn with(url: &Url, name: &str, value: &str) -> Url {
    let mut url = url.clone();
    url.query_pairs_mut().append_pair(name, value);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feeds_are_the_public_timeline_and_hashtags() {
        for right in ["public", "tag/rust", "tag/Grüße", "tag/日本語", "tag/a_1"] {
            assert!(accepts(right), "{right}");
        }
        for wrong in [
            "", "newest", "tag/", "tag/1984", "tag/a b", "tag/a/b", "tag/#a", "tag/a?b",
        ] {
            assert!(!accepts(wrong), "{wrong}");
        }
        assert!(!accepts(&format!("tag/{}", "a".repeat(101))));
    }

    #[test]
    fn ids_sort_by_length_first() {
        let mut ids = ["117020593741189701", "99", "117020593134559451", "100"];
        ids.sort_by(|a, b| by_age(a, b));
        assert_eq!(
            ids,
            ["99", "100", "117020593134559451", "117020593741189701"]
        );
    }
}
