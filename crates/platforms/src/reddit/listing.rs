//! One listing, newest first, read back to the known posts.

use serde::Deserialize;
use url::Url;

use super::{
    Reddit,
    list::List,
    thing::{Thing, is_fullname},
};
use crate::{
    Cursor, PollError, PollLimits, Polled,
    paging::Pages,
    reading::{Met, Reading},
};

const PER_PAGE: usize = 100;
/// A listing contains about as many posts, minus the deleted ones.
const REACH: usize = 900;
/// Number of posts before a deleted one that are tried in its place.
const ANCHORS: usize = 5;

#[derive(Deserialize)]
pub(super) struct Listing {
    pub(super) data: Data,
}

#[derive(Deserialize)]
pub(super) struct Data {
    pub(super) children: Vec<serde_json::Value>,
    after: Option<String>,
}

pub(super) async fn poll(
    platform: &Reddit,
    list: &List<'_>,
    cursor: Option<&Cursor>,
    limits: &PollLimits,
) -> Result<Polled, PollError> {
    let mut reading = Reading::new(cursor, limits);
    let mut pages = Pages::new(&reading, limits);
    // The posts after which the next page may start, the last one first.
    let mut anchors = noted(pages.position());
    while pages.go_on() {
        let data = match older(platform, list, &anchors).await {
            Ok(data) => data,
            Err(error) => {
                if pages.fail(error)? {
                    anchors.clear();
                    continue;
                }
                break;
            }
        };
        // None of the stored anchors exists any more.
        let lost = data.children.is_empty() && !anchors.is_empty();
        for value in &data.children {
            match Thing::read(value, list.comments) {
                Ok(Some(thing)) => take(platform, &thing, &mut reading, &mut pages),
                Ok(None) => {}
                Err(error) => reading.set_aside(value, &error),
            }
        }
        let read = pages.read();
        if pages.turn() {
            return Ok(pages.finish(reading, None));
        }
        let last = data.after.filter(|after| is_fullname(after));
        let Some(last) = last else {
            // The listing ends here, but it is too long for the beginning of a subreddit, or did not reach the
            // earlier reading or the start of a search.
            let moved = pages.resumes() && pages.follows_the_known();
            let is_cut = read >= REACH && !pages.reached_the_start();
            if lost || is_cut || ((read >= REACH || moved) && !pages.reached_the_known()) {
                reading.gap = pages.gap("more posts than the platform lists");
            }
            return Ok(pages.finish(reading, None));
        };
        let names = data.children.iter().rev();
        let names = names.filter_map(|child| child.get("data")?.get("name")?.as_str());
        let others = names.filter(|name| *name != last && is_fullname(name));
        let others: Vec<String> = others.take(ANCHORS - 1).map(str::to_owned).collect();
        anchors = std::iter::once(last).chain(others).collect();
    }
    Ok(pages.finish(reading, Some(anchors.join(","))))
}

/// The anchors of a position.
fn noted(position: Option<&str>) -> Vec<String> {
    let names = position.into_iter().flat_map(|names| names.split(','));
    let names = names.filter(|name| is_fullname(name)).take(ANCHORS);
    names.map(str::to_owned).collect()
}

/// The page after the first anchor that has one.
async fn older(platform: &Reddit, list: &List<'_>, anchors: &[String]) -> Result<Data, PollError> {
    let Some((last, before)) = anchors.split_first() else {
        return page(platform, list, None, PER_PAGE).await;
    };
    let mut data = page(platform, list, Some(last), PER_PAGE).await?;
    for anchor in before {
        if !data.children.is_empty() {
            break;
        }
        data = page(platform, list, Some(anchor), PER_PAGE).await?;
    }
    Ok(data)
}

async fn page(
    platform: &Reddit,
    list: &List<'_>,
    after: Option<&str>,
    limit: usize,
) -> Result<Data, PollError> {
    let group = list.members.join("+");
    let url = address(platform, &group, list.comments, after, limit);
    let listing: Listing = platform.get(&url, &format!("r/{group}")).await?;
    Ok(listing.data)
}

fn address(
    platform: &Reddit,
    group: &str,
    comments: bool,
    after: Option<&str>,
    limit: usize,
) -> Url {
    let listed = if comments { "comments" } else { "new" };
    let mut url = platform.below(&format!("r/{group}/{listed}"));
    let mut query = url.query_pairs_mut();
    query.append_pair("limit", &limit.to_string());
    if let Some(after) = after {
        query.append_pair("after", after);
    }
    drop(query);
    url
}

/// Checks whether a group can be read.
pub(super) async fn probe(
    platform: &Reddit,
    members: &[String],
    comments: bool,
) -> Result<(), PollError> {
    let members = members.iter().map(String::as_str).collect();
    let list = List { members, comments };
    page(platform, &list, None, 1).await.map(drop)
}

fn take(platform: &Reddit, thing: &Thing, reading: &mut Reading, pages: &mut Pages) {
    let known = reading.knew(&thing.name);
    if known && thing.is_gone() {
        reading.deleted.push(thing.id(&platform.name));
    }
    let time = thing.time();
    if !known && thing.is_gone() {
        // A moderator may approve it yet.
        if !thing.is_pinned() {
            pages.met(Met::Known, false, time);
        }
        return;
    }
    let met: Met = reading.offer(&thing.name, time, |time| thing.post(&platform.name, time));
    if !thing.is_pinned() {
        pages.met(met, known, time);
    }
}
