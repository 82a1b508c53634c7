//! Several subreddits in one request, even if one of them cannot be read.
//!
//! Reddit refuses a whole group because of one member. Then the group is halved until a single subreddit is
//! refused. It is left out for an hour, in this process, and the others are read as one group again. Cost:
//! about two requests for each halving, once an hour.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::{Reddit, list::List, listing};
use crate::{Cursor, PollError, PollLimits, Polled};

/// Time until an unreadable subreddit is tried in its groups again.
const LEAVE_OUT: Duration = Duration::from_hours(1);
/// Maximum number of unreadable subreddits that are remembered.
const MAX_LEFT_OUT: usize = 10_000;
/// Maximum number of requests in one search for the unreadable members.
const MAX_PROBES: usize = 64;

const LEFT_OUT: &str = "Some of these communities cannot be read, and are left out.";

/// The unreadable subreddits, each with the time of the failure.
#[derive(Default)]
pub(super) struct Unreadable {
    since: Mutex<HashMap<String, Instant>>,
}

impl Unreadable {
    fn holds(&self, name: &str) -> bool {
        let since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let at = since.get(&name.to_ascii_lowercase());
        at.is_some_and(|at| at.elapsed() < LEAVE_OUT)
    }

    fn insert(&self, name: &str) {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.retain(|_, at| at.elapsed() < LEAVE_OUT);
        if since.len() < MAX_LEFT_OUT {
            since.insert(name.to_ascii_lowercase(), Instant::now());
        }
    }
}

pub(super) async fn poll(
    platform: &Reddit,
    list: &List<'_>,
    cursor: Option<&Cursor>,
    limits: &PollLimits,
) -> Result<Polled, PollError> {
    if let [_] = list.members[..] {
        return listing::poll(platform, list, cursor, limits).await;
    }
    let readable = |list: &List<'_>| {
        let members = list.members.iter();
        let members = members.filter(|name| !platform.unreadable.holds(name));
        members.copied().map(str::to_owned).collect::<Vec<_>>()
    };
    let mut members = readable(list);
    // All of them were unreadable: perhaps that has changed.
    if members.is_empty() {
        members = list.members.iter().map(|&name| name.to_owned()).collect();
    }
    let mut polled = read(platform, &members, list.comments, cursor, limits).await;
    if members.len() > 1 && polled.as_ref().is_err_and(is_refusal) {
        members = find(platform, members, list.comments).await?;
        if !members.is_empty() {
            polled = read(platform, &members, list.comments, cursor, limits).await;
        }
    }
    let mut polled = polled?;
    if members.len() < list.members.len() {
        polled.notice = polled.notice.or(Some(LEFT_OUT));
    }
    Ok(polled)
}

async fn read(
    platform: &Reddit,
    members: &[String],
    comments: bool,
    cursor: Option<&Cursor>,
    limits: &PollLimits,
) -> Result<Polled, PollError> {
    let members = members.iter().map(String::as_str).collect();
    let list = List { members, comments };
    listing::poll(platform, &list, cursor, limits).await
}

/// Returns true if the error may concern only one member.
fn is_refusal(error: &PollError) -> bool {
    match error {
        PollError::NotFound(_) => true,
        // 401 is about the token.
        PollError::Refused { status, .. } => *status == 403,
        _ => false,
    }
}

/// Returns the readable members of a group that was refused.
async fn find(
    platform: &Reddit,
    members: Vec<String>,
    comments: bool,
) -> Result<Vec<String>, PollError> {
    let mut good = Vec::new();
    let mut unreadable = Vec::new();
    let half = members.len() / 2;
    let mut halves = vec![members[half..].to_vec(), members[..half].to_vec()];
    let mut probes = 0;
    while let Some(part) = halves.pop() {
        // The state of the rest is unknown; the next poll checks it.
        if probes == MAX_PROBES {
            break;
        }
        probes += 1;
        match listing::probe(platform, &part, comments).await {
            Ok(()) => good.extend(part),
            Err(error) if is_refusal(&error) => match part.as_slice() {
                [name] => unreadable.push((name.clone(), error)),
                _ => {
                    let half = part.len() / 2;
                    halves.push(part[half..].to_vec());
                    halves.push(part[..half].to_vec());
                }
            },
            Err(error) => return Err(error),
        }
    }
    // If no member can be read, Reddit refuses our access, not the subreddits.
    if !good.is_empty() {
        for (subreddit, error) in unreadable {
            tracing::warn!(
                platform = platform.name,
                subreddit,
                %error,
                "a subreddit cannot be read and is left out of its group for an hour"
            );
            platform.unreadable.insert(&subreddit);
        }
    }
    Ok(good)
}
