//! One listing, newest first, read back to the known posts.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::{
    Reddit,
    list::List,
    thing::{Thing, is_fullname},
};
use crate::{
    Cursor, PollError, PollLimits, Polled,
    paging::Pages,
    reading::Reading,
    walk::{self, Item, Next, Page, Read, walk},
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
    pub(super) children: Vec<Value>,
    after: Option<String>,
}

/// The posts or comments of a list. A position has the posts after which the next page may start, the last one first.
struct Things<'a> {
    platform: &'a Reddit,
    list: &'a List<'a>,
    /// True if all posts of the position were deleted, so that pages cannot continue from it.
    is_lost: bool,
}

#[async_trait]
impl walk::Listing for Things<'_> {
    type At = String;

    fn start(&self, stored: Option<&str>) -> String {
        let names = stored.into_iter().flat_map(|names| names.split(','));
        let names = names.filter(|name| is_fullname(name)).take(ANCHORS);
        names.collect::<Vec<_>>().join(",")
    }

    /// The listing is too long for the beginning of a subreddit, or did not reach the earlier reading or the start of a
    /// search.
    fn gap(&self, pages: &Pages) -> Option<&'static str> {
        let moved = pages.resumes() && pages.follows_the_known();
        let is_full = pages.read() >= REACH;
        let is_cut = is_full && !pages.reached_the_start();
        let has_gap = self.is_lost || is_cut || ((is_full || moved) && !pages.reached_the_known());
        has_gap.then_some("more posts than the platform lists")
    }

    async fn page(&mut self, at: &String) -> Result<Page<String>, PollError> {
        let data = older(self.platform, self.list, at).await?;
        self.is_lost = data.children.is_empty() && !at.is_empty();
        let Some(last) = data.after.filter(|after| is_fullname(after)) else {
            return Ok((data.children, Next::End));
        };
        let names = data.children.iter().rev();
        let names = names.filter_map(|child| child.get("data")?.get("name")?.as_str());
        let others = names.filter(|name| *name != last && is_fullname(name));
        let anchors = std::iter::once(&*last).chain(others.take(ANCHORS - 1));
        let next = anchors.collect::<Vec<_>>().join(",");
        Ok((data.children, Next::Page(next)))
    }

    fn read(&self, value: &Value) -> Read<'_> {
        let platform = &self.platform.name;
        let thing = Thing::read(value, self.list.comments)?;
        Ok(thing.map(|thing| Item {
            is_pinned: thing.is_pinned(),
            gone: thing.is_gone().then(|| thing.id(platform)),
            ..Item::new(thing.name.clone(), thing.time(), move |time| {
                thing.post(platform, time)
            })
        }))
    }
}

pub(super) async fn poll(
    platform: &Reddit,
    list: &List<'_>,
    cursor: Option<&Cursor>,
    limits: &PollLimits,
) -> Result<Polled, PollError> {
    let mut things = Things {
        platform,
        list,
        is_lost: false,
    };
    walk(&mut things, Reading::new(cursor, limits), limits).await
}

/// The page after the first anchor that has one.
async fn older(platform: &Reddit, list: &List<'_>, at: &str) -> Result<Data, PollError> {
    let anchors: Vec<&str> = at.split(',').filter(|anchor| !anchor.is_empty()).collect();
    let mut data = page(platform, list, anchors.first().copied(), PER_PAGE).await?;
    for anchor in anchors.iter().skip(1) {
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
