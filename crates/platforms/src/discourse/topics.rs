//! New topics: first the lists, then each topic's text.
//!
//! A list has no text, so its topics are not offered as they are read, and a poll reads no more of it than topics can
//! wait. [`crate::walk`] offers items at once.

use std::{collections::HashSet, time::Instant};

use domain::{Post, PostType, Timestamp, User};
use futures::{StreamExt, stream};
use serde::Deserialize;
use url::Url;

use super::{
    Discourse, List,
    shape::{Listed, Topic, TopicsPage},
    unlisted,
};
use crate::{
    Cursor, PollError, PollLimits, Polled,
    cursor::{MAX_PENDING, Pending},
    paging::Pages,
    reading::{Met, Reading},
    text,
};

const PER_PAGE: usize = 100;
const MAX_PAGE: u64 = 1_000_000;
/// Maximum number of topics read in one poll: four fifths of what an address may request in ten seconds.
const TOPICS_PER_POLL: usize = 40;
/// Maximum number of pending topics read in one poll.
const PENDING_PER_POLL: usize = 20;
const AT_ONCE: usize = 4;
/// The lists are not read while so many topics from this period wait: they would only return the same topics
/// again.
const BACKLOG: std::time::Duration = std::time::Duration::from_mins(10);
/// Time after which an unreadable topic is given up.
const PENDING_FOR: std::time::Duration = std::time::Duration::from_hours(6);

/// A topic whose text is still to be read.
struct Wanted {
    id: u64,
    time: Option<Timestamp>,
}

pub(super) async fn poll(
    site: &Discourse,
    list: List<'_>,
    cursor: Option<&Cursor>,
    limits: &PollLimits,
) -> Result<Polled, PollError> {
    // Lists and topics share the time of one poll.
    let begin = Instant::now();
    let mut reading = Reading::new(cursor, limits);
    let backlog = reading.cursor.pending.iter();
    let backlog = backlog.filter(|pending| reading.now.since(pending.1) < BACKLOG);
    let has_backlog = backlog.count() >= TOPICS_PER_POLL;
    let mut pages = Pages::new(&reading, limits);
    let (mut wanted, left) = if has_backlog {
        reading.partial = true;
        let left = pages
            .resumes()
            .then(|| pages.position().unwrap_or_default().to_owned());
        (Vec::new(), left)
    } else {
        read_lists(site, list, &mut reading, &mut pages).await?
    };
    if list == List::Latest && !has_backlog {
        let listed = wanted.iter().map(|topic| topic.id);
        let waiting = reading.cursor.pending.iter();
        let waiting = waiting.filter_map(|pending| pending.0.parse().ok());
        let listed: HashSet<u64> = listed.chain(waiting).collect();
        let found = unlisted::topics(site, &reading, &listed).await;
        wanted.extend(found.into_iter().map(|(id, time)| Wanted { id, time }));
    }
    // Oldest first, so that the topics left to the next poll are newer than those that this one returns.
    wanted.sort_by_key(|topic| (topic.time.unwrap_or(reading.now), topic.id));
    let most = TOPICS_PER_POLL.min(limits.max_posts.max(1));
    let most_pending = if has_backlog {
        most
    } else {
        PENDING_PER_POLL.min(most)
    };
    let mut asked = take_pending(&mut reading, most_pending);
    let room = most.saturating_sub(asked.len());
    let later = wanted.split_off(room.min(wanted.len()));
    asked.extend(wanted.iter().map(|topic| topic.id));

    let mut hindered = None;
    let mut topics = Vec::new();
    let mut failed = Vec::new();
    let mut gone = 0;
    let mut answers = stream::iter(asked)
        .map(|id| async move { (id, topic(site, id).await) })
        .buffered(AT_ONCE);
    while let Some((id, answer)) = answers.next().await {
        match answer {
            Ok(topic) => topics.push(topic),
            Err(PollError::NotFound(_)) => {
                // It may be restored.
                stop_waiting(id, &mut reading);
                reading.record_hidden(&id.to_string());
                gone += 1;
            }
            Err(error) => {
                let error = could_not(site, id, error, &mut reading);
                failed.push(id);
                hindered = error.or(hindered);
            }
        }
        // If most topics fail, or the site asks to slow down, the rest wait for a later poll.
        let is_refused = hindered.as_ref().is_some_and(is_wish);
        if is_refused || failed.len() > topics.len() + AT_ONCE || begin.elapsed() > limits.max_time
        {
            break;
        }
    }
    drop(answers);
    let mut read = 0;
    // Newest first, as lists order topics of the same time.
    for topic in topics.iter().rev() {
        match offer(site, topic, &mut reading).await {
            Ok(()) => read += 1,
            Err(error) => {
                let this = could_not(site, topic.id, error, &mut reading);
                hindered = hindered.or(this);
            }
        }
    }
    if read > 0 {
        for id in failed {
            give_up(id, &mut reading);
        }
    }
    // The unread topics may drop out of the lists before a later poll, so they are noted.
    let unread: Vec<u64> = wanted.iter().chain(&later).map(|topic| topic.id).collect();
    for id in &unread {
        let name = id.to_string();
        if !reading.knows(&name) && !reading.is_hidden(&name) {
            wait_for(*id, &mut reading);
        }
    }
    let waiting = !later.is_empty() || !reading.cursor.pending.is_empty();
    let mut polled = pages.finish(reading, left);
    let asked = hindered.as_ref().and_then(PollError::retry_after);
    polled.next_hint = polled.next_hint.max(asked);
    let throttled = hindered.as_ref().and_then(PollError::throttled);
    polled.throttled = polled.throttled.or(throttled);
    let settled = read + gone;
    if has_backlog && settled == 0 {
        // No topic was settled, so another poll at once would ask for the same ones again.
        polled.more = false;
    }
    // Another poll can follow at once only if this poll settled some topics and the site allows it.
    polled.more |= settled > 0 && waiting && !hindered.as_ref().is_some_and(is_wish);
    Ok(polled)
}

/// Returns true if the site, or the operator's budget, allows no more requests now.
fn is_wish(error: &PollError) -> bool {
    matches!(
        error,
        PollError::Throttled { .. }
            | PollError::BudgetSpent { .. }
            | PollError::Unauthorized { .. }
            | PollError::Forbidden(_)
    )
}

/// Records a topic that could not be read. Returns the error if it affects more than this topic.
fn could_not(
    site: &Discourse,
    id: u64,
    error: PollError,
    reading: &mut Reading,
) -> Option<PollError> {
    tracing::debug!(platform = site.name, id, %error, "a topic could not be read");
    wait_for(id, reading);
    let of_this = matches!(error, PollError::Malformed(_) | PollError::Refused { .. });
    (!of_this).then_some(error)
}

/// Gives up a topic that could not be read for hours while others could.
fn give_up(id: u64, reading: &mut Reading) {
    let name = id.to_string();
    let mut waiting = reading.cursor.pending.iter();
    let since = waiting.find(|pending| pending.0 == name);
    if since.is_some_and(|pending| reading.now.since(pending.1) > PENDING_FOR) {
        tracing::warn!(id, "a topic could not be read for hours and is given up");
        let reason = "it could not be read for hours, while others could";
        reading.set_aside(&serde_json::json!({ "id": id }), &reason);
        stop_waiting(id, reading);
        reading.record(&name, None);
    }
}

/// Returns the new topics, in no order, and the position of the next page unless the lists were read to the
/// end.
async fn read_lists(
    site: &Discourse,
    list: List<'_>,
    reading: &mut Reading,
    pages: &mut Pages,
) -> Result<(Vec<Wanted>, Option<String>), PollError> {
    let pending = reading.cursor.pending.iter();
    let pending: HashSet<String> = pending.map(|pending| pending.0.clone()).collect();
    let room = MAX_PENDING.saturating_sub(pending.len());
    let room = room.max(TOPICS_PER_POLL - PENDING_PER_POLL);
    let mut wanted: Vec<Wanted> = Vec::new();
    let mut met_here = HashSet::new();
    let mut number = noted(pages.position());
    // Pages shift, so the reading must overlap with the earlier one.
    let mut is_sure = number == 0;
    while pages.go_on(reading) && wanted.len() < room {
        let page = site.get(&address(site, list, number), &name(list)).await;
        let page: TopicsPage = match page {
            Ok(page) => page,
            Err(error) => {
                if pages.fail(error)? {
                    (number, is_sure) = (0, true);
                    continue;
                }
                break;
            }
        };
        let count = page.topic_list.topics.len();
        let before = wanted.len();
        for value in &page.topic_list.topics {
            let topic = match Listed::deserialize(value) {
                Ok(topic) => topic,
                Err(error) => {
                    reading.set_aside(value, &error);
                    continue;
                }
            };
            let native = topic.id.to_string();
            let known = reading.knew(&native);
            let waits = pending.contains(&native);
            let time = reading.sane(topic.time());
            let met = if !met_here.insert(topic.id) {
                Met::Known
            } else if known {
                reading.record(&native, time);
                Met::Known
            } else if reading.is_old(time) {
                reading.record(&native, time);
                Met::Old
            } else if !topic.is_public() {
                // It may be listed later, and is not remembered.
                Met::Known
            } else if reading.is_hidden(&native) {
                reading.record_hidden(&native);
                Met::Known
            } else {
                // A pending topic is still new, but must not be requested twice.
                if !waits {
                    wanted.push(Wanted { id: topic.id, time });
                }
                Met::New
            };
            is_sure |= waits;
            if !topic.is_pinned() {
                pages.met(met, known, time);
            }
        }
        if wanted.len() > room {
            // Topics that do not fit are read again with their page.
            wanted.truncate(if before > 0 { before } else { wanted.len() });
            break;
        }
        is_sure |= pages.overlaps() || number == 0;
        let is_end = pages.turn();
        if !is_sure {
            number -= 1;
            continue;
        }
        // An address that does not advance says no more than that there is a next page.
        let next = page.topic_list.more_topics_url.as_deref();
        let next = next.map(|next| {
            page_number(next)
                .unwrap_or_default()
                .max(number.saturating_add(1))
        });
        let next = next.filter(|next| *next <= MAX_PAGE);
        match next {
            Some(next) if count > 0 && !is_end => number = next,
            _ => return Ok((wanted, None)),
        }
    }
    Ok((wanted, Some(number.to_string())))
}

/// The page of a position, or the page before it, because topics may have moved.
fn noted(position: Option<&str>) -> u64 {
    let number = position.and_then(|number| number.parse::<u64>().ok());
    number.unwrap_or(0).min(MAX_PAGE).saturating_sub(1)
}

fn name(list: List<'_>) -> String {
    match list {
        List::Category { slug, id } => format!("c/{slug}/{id}"),
        List::Latest | List::Posts => "latest".to_owned(),
    }
}

fn address(site: &Discourse, list: List<'_>, page: u64) -> Url {
    let mut url = match list {
        List::Category { .. } => site.below(&format!("{}/l/latest.json", name(list))),
        List::Latest | List::Posts => site.below("latest.json"),
    };
    url.query_pairs_mut()
        .append_pair("order", "created")
        .append_pair("per_page", &PER_PAGE.to_string())
        .append_pair("page", &page.to_string());
    url
}

/// The page number in an address such as `/latest?order=created&page=1`.
fn page_number(url: &str) -> Option<u64> {
    let (_, query) = url.split_once('?')?;
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let (_, number) = pairs.find(|(name, _)| name == "page")?;
    number.parse().ok()
}

/// Takes the pending topics to request in this poll; the others wait for a later one.
fn take_pending(reading: &mut Reading, most: usize) -> Vec<u64> {
    let waiting = std::mem::take(&mut reading.cursor.pending);
    for Pending(id, since) in waiting {
        if reading.knew(&id) {
            continue;
        }
        reading.cursor.pending.push(Pending(id, since));
    }
    let pending = &mut reading.cursor.pending;
    let asked = pending.len().min(most);
    let ids = pending.iter().take(asked);
    ids.filter_map(|pending| pending.0.parse().ok()).collect()
}

/// Adds a topic to the pending ones. One that waits already goes behind the others, so that topics that cannot be read
/// do not keep the others waiting.
fn wait_for(id: u64, reading: &mut Reading) {
    let id = id.to_string();
    let pending = &mut reading.cursor.pending;
    if let Some(at) = pending.iter().position(|pending| pending.0 == id) {
        let waits = pending.remove(at);
        pending.push(waits);
    } else if pending.len() < MAX_PENDING {
        pending.push(Pending(id, reading.now));
    }
}

fn stop_waiting(id: u64, reading: &mut Reading) {
    let id = id.to_string();
    reading.cursor.pending.retain(|pending| pending.0 != id);
}

async fn topic(site: &Discourse, id: u64) -> Result<Topic, PollError> {
    let url = site.below(&format!("t/{id}.json"));
    let topic: Topic = site.get(&url, "topic").await?;
    if topic.id == id {
        Ok(topic)
    } else {
        Err(PollError::Malformed("a topic with another id".into()))
    }
}

async fn offer(site: &Discourse, topic: &Topic, reading: &mut Reading) -> Result<(), PollError> {
    let native = topic.id.to_string();
    let subforum = site.categories.subforum(site, topic.category_id).await?;
    stop_waiting(topic.id, reading);
    if topic.is_gone() {
        reading.record_hidden(&native);
        return Ok(());
    }
    reading.offer_awaited(&native, topic.time(), |time| {
        let first = topic.first_post().ok_or("no first post")?;
        let author = text::line(first.username.as_deref().unwrap_or_default());
        let body = text::some_block(&text::from_html(
            first.cooked.as_deref().unwrap_or_default(),
        ));
        let mut title = text::line(topic.title.as_deref().unwrap_or_default());
        if title.is_empty() {
            title = text::title_of(body.as_deref().ok_or("no title")?);
        }
        let slug = topic.slug.as_deref().filter(|slug| !slug.is_empty());
        let path = format!("t/{}/{}", slug.unwrap_or("-"), topic.id);
        Ok(Some(Post {
            post_type: PostType::ForumLink,
            time,
            id: format!("{}:t/{}", site.name, topic.id),
            url: site.below(&path).to_string(),
            title: Some(title),
            text: body,
            subforum: Some(subforum),
            user: user(site, author, first.user_id)?,
        }))
    });
    Ok(())
}

pub(super) fn user(site: &Discourse, name: String, id: Option<i64>) -> Result<User, &'static str> {
    if name.is_empty() {
        return Err("no author");
    }
    Ok(User {
        id: id.map_or_else(|| name.clone(), |id| id.to_string()),
        url: site.below(&format!("u/{name}")).to_string(),
        name,
    })
}

#[cfg(test)]
mod tests {
    use super::page_number;

    #[test]
    fn next_page_number_is_read_from_its_address() {
        assert_eq!(page_number("/latest.json?page=1"), Some(1));
        let whole = "https://a.b/c/x/7/l/latest?no_definitions=true&order=created&page=12";
        assert_eq!(page_number(whole), Some(12));
        for none in ["", "/latest", "/latest?page=", "/latest?page=-1"] {
            assert_eq!(page_number(none), None);
        }
    }
}
