//! Checks whether posts and comments still exist, and what they say now, a hundred at a time.
//!
//! Reddit silently leaves unknown posts out of its response. Because a response may be short for other reasons,
//! a post counts as gone only if two consecutive responses leave it out. Responses that know none of many posts
//! say that Reddit has a problem, not that the posts are gone.

use std::collections::{HashMap, HashSet};

use domain::Timestamp;

use super::{
    Reddit,
    listing::Listing,
    thing::{Thing, is_fullname},
};
use crate::{PollError, RecheckResult, adapter::refuse_if_all_gone};

pub(super) const BATCH: usize = 100;

pub(super) async fn check(platform: &Reddit, ids: &[String]) -> Result<RecheckResult, PollError> {
    let mut by_name: HashMap<&str, &String> = HashMap::new();
    for id in ids.iter().take(BATCH) {
        let name = id.strip_prefix(&platform.name);
        let name = name.and_then(|rest| rest.strip_prefix(':'));
        if let Some(name) = name.filter(|name| is_fullname(name)) {
            by_name.insert(name, id);
        }
    }
    let asked: Vec<&str> = by_name.keys().copied().collect();
    let first = look_up(platform, &asked).await?;
    let absent: Vec<&str> = asked
        .iter()
        .filter(|name| !first.contains_key(**name))
        .copied()
        .collect();
    let again = look_up(platform, &absent).await?;
    // Reddit still returns deleted ones by name.
    let known = first.len() + again.len();
    refuse_if_all_gone(asked.len(), asked.len().saturating_sub(known))?;
    let gone: HashSet<&str> = asked
        .into_iter()
        .filter(|name| match first.get(*name).or(again.get(*name)) {
            Some(thing) => thing.is_gone(),
            None => true,
        })
        .collect();
    let gone = ids.iter().filter(|id| {
        by_name
            .iter()
            .any(|(name, own)| own == id && gone.contains(name))
    });
    let now = Timestamp::now();
    let things = first.values().chain(again.values());
    let current = things
        .filter(|thing| by_name.contains_key(thing.name.as_str()))
        .filter_map(|thing| {
            let post = thing.post(&platform.name, thing.time().unwrap_or(now));
            post.ok().flatten()
        });
    Ok(RecheckResult {
        gone: gone.cloned().collect(),
        current: current.collect(),
    })
}

/// Returns the posts that the platform knows, by name.
async fn look_up(platform: &Reddit, names: &[&str]) -> Result<HashMap<String, Thing>, PollError> {
    if names.is_empty() {
        return Ok(HashMap::new());
    }
    let mut url = platform.below("api/info");
    url.query_pairs_mut().append_pair("id", &names.join(","));
    let listing: Listing = platform.get(&url, "info").await?;
    let things = listing
        .data
        .children
        .iter()
        .filter_map(|child| Thing::parse(child).ok());
    Ok(things.map(|thing| (thing.name.clone(), thing)).collect())
}
