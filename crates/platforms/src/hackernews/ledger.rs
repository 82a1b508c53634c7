//! Checks that each id of Hacker News is accounted for: stories, jobs, polls and comments share one sequence of ids, and
//! `maxitem.json` has the newest.
//!
//! Ids of items that the feed does not have come from one search for each stretch of ids. The others are asked for one by
//! one, at most [`ITEMS`] in a check. So a feed costs about two requests in ten minutes, and one for each id that no search
//! has. Items that exist and were not read are read here.

use std::{collections::BTreeSet, time::Duration};

use domain::Timestamp;
use futures::{StreamExt, stream};

use super::{
    HackerNews, List,
    algolia::{self, Window},
    firebase::{self, Item},
};
use crate::{
    Gap, PollError, PollLimits, Polled,
    cursor::{Seen, key, to_seconds},
    ids::{IdAccount, IdLedger},
};

/// The ledger's name in the cursor.
const LEDGER: &str = "ids";
/// Maximum number of items that one check asks for, and of missing items that it looks at again.
const ITEMS: usize = 100;
const AGAIN: usize = 50;
const AT_ONCE: usize = 8;
/// Maximum number of searches in one check, of 1,000 items each.
const SEARCHES: usize = 5;
/// Clocks differ, and times of items are in seconds.
const MARGIN: Duration = Duration::from_mins(1);

/// Result of checking one id.
enum Kind {
    Read,
    Other,
    Gone,
    Missing,
}

/// Accounts for ids. `ask` is false while ordinary polls have more to read: then only what was read is noted.
pub(super) async fn account(
    platform: &HackerNews,
    list: List,
    polled: &mut Polled,
    ask: bool,
) -> IdAccount {
    let mut account = IdAccount::default();
    let Some(mut ledger) = polled.cursor.own::<IdLedger>(LEDGER) else {
        if ask {
            match firebase::newest_id(platform).await {
                Ok(newest) => {
                    let ledger = IdLedger::starting_at(newest, Timestamp::now());
                    polled.cursor.set_own(LEDGER, &ledger);
                    account.up_to = Some(newest);
                }
                Err(error) => account.failure = Some(error),
            }
        }
        return account;
    };
    for post in &polled.posts {
        let native = post.id.strip_prefix(&platform.name);
        let native = native.and_then(|rest| rest.strip_prefix(':')?.parse().ok());
        if let Some(id) = native.filter(|id| ledger.record_read(*id)) {
            account.explained.push(id);
            account.read += 1;
        }
    }
    let before = ledger.up_to;
    if ask && let Err(error) = check(platform, list, &mut ledger, polled, &mut account).await {
        account.failure = Some(error);
    }
    account.up_to = Some(ledger.up_to).filter(|up_to| *up_to != before);
    polled.cursor.set_own(LEDGER, &ledger);
    account
}

async fn check(
    platform: &HackerNews,
    list: List,
    ledger: &mut IdLedger,
    polled: &mut Polled,
    account: &mut IdAccount,
) -> Result<(), PollError> {
    let now = Timestamp::now();
    if ledger.is_newest_old(now) {
        let newest = firebase::newest_id(platform).await?;
        if !ledger.advance(newest, now) {
            polled.gap.get_or_insert(Gap {
                from: Some(ledger.from_time),
                to: Some(now),
                reason: "ids that are not accounted for",
            });
            *ledger = IdLedger::starting_at(newest, now);
        }
    }
    let again = ledger.due_again(now, AGAIN);
    if !again.is_empty() {
        let (answers, failure) = items(platform, again).await;
        for (id, item) in answers {
            let kind = settle(platform, list, id, item, polled, account);
            if matches!(kind, Kind::Missing) {
                ledger.still_missing(id, now);
            } else if ledger.explain(id) {
                account.explained.push(id);
                count(&kind, account);
            }
        }
        if let Some(error) = failure {
            return Err(error);
        }
    }
    if ledger.unread(1).is_empty() {
        // The rest of the stretch was read.
        account.read += ledger.pass(&BTreeSet::new());
        return Ok(());
    }
    let mut known = others(platform, list, ledger).await;
    let asked = ledger.unread(usize::MAX);
    let before = known.clone();
    let asked = asked.into_iter().filter(|id| !before.contains(id));
    let (answers, failure) = items(platform, asked.take(ITEMS).collect()).await;
    let mut kinds = Vec::new();
    for (id, item) in answers {
        kinds.push((id, settle(platform, list, id, item, polled, account)));
        known.insert(id);
    }
    let from = ledger.up_to;
    account.read += ledger.pass(&known);
    let passed = (from + 1)..=ledger.up_to;
    for (id, kind) in kinds {
        count(&kind, account);
        if matches!(kind, Kind::Missing) {
            ledger.miss(id, now);
            account.missing.push(id);
        }
    }
    account.other += before.iter().filter(|id| passed.contains(id)).count() as u64;
    failure.map_or(Ok(()), Err)
}

fn count(kind: &Kind, account: &mut IdAccount) {
    match kind {
        Kind::Read => account.read += 1,
        Kind::Other => account.other += 1,
        Kind::Gone => account.gone += 1,
        Kind::Missing => {}
    }
}

/// The ids of the stretch whose items the feed does not have, as far as the search has them.
async fn others(platform: &HackerNews, list: List, ledger: &IdLedger) -> BTreeSet<u64> {
    let other = if list == List::Comments {
        List::Newest
    } else {
        List::Comments
    };
    let window = Window {
        start: Some(to_seconds(ledger.from_time.minus(MARGIN))),
        until: Some(to_seconds(ledger.due_time.plus(MARGIN))),
    };
    let limits = PollLimits {
        max_pages: SEARCHES,
        max_posts: usize::MAX,
        ..PollLimits::default()
    };
    match algolia::read(platform, other, window, &limits).await {
        Ok(found) => {
            let ids = found.hits.iter().filter_map(|hit| hit.id_of(other));
            ids.filter(|id| (ledger.up_to + 1..=ledger.due).contains(id))
                .collect()
        }
        Err(error) => {
            tracing::debug!(platform = platform.name, %error, "no search for other items; asking for each");
            BTreeSet::new()
        }
    }
}

/// Asks for items, in the order of `ids`, until one cannot be had; then returns the reason too. If others can be read, an
/// item that cannot counts as not shown.
async fn items(
    platform: &HackerNews,
    ids: Vec<u64>,
) -> (Vec<(u64, Option<Item>)>, Option<PollError>) {
    let answers: Vec<_> = stream::iter(ids)
        .map(|id| async move { (id, firebase::item(platform, id).await) })
        .buffered(AT_ONCE)
        .take_until(tokio::time::sleep(platform.item_budget))
        .collect()
        .await;
    let is_answered = answers.iter().any(|(_, item)| item.is_ok());
    let mut found = Vec::new();
    for (id, item) in answers {
        match item {
            Ok(item) => found.push((id, item)),
            Err(PollError::Status { .. } | PollError::Malformed(_) | PollError::NotFound(_))
                if is_answered =>
            {
                found.push((id, None));
            }
            Err(error) => return (found, Some(error)),
        }
    }
    (found, None)
}

/// Decides what an item is, and reads it if it is the feed's.
fn settle(
    platform: &HackerNews,
    list: List,
    id: u64,
    item: Option<Item>,
    polled: &mut Polled,
    account: &mut IdAccount,
) -> Kind {
    let Some(item) = item else {
        return Kind::Missing;
    };
    if item.is_gone() {
        return Kind::Gone;
    }
    if !item.is_of(list) {
        return Kind::Other;
    }
    let time = item.time().unwrap_or_else(Timestamp::now);
    if let Ok(Some(post)) = item.post(&platform.name, time) {
        // The search may return it later.
        let seen = Seen(key(&id.to_string()), Some(to_seconds(time)));
        polled.cursor.seen.push(seen);
        account.posts.push(post);
    }
    Kind::Read
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cursor;

    #[test]
    fn stored_ledger_is_written_as_it_was_read() {
        let stored = serde_json::json!({
            "version": 1,
            "highWater": "2026-11-27T10:00:00.000000Z",
            "seen": "=8863 1700000000",
            "ids": {
                "upTo": 8_860,
                "fromTime": "2026-11-27T09:30:00.000000Z",
                "due": 8_862,
                "dueTime": "2026-11-27T09:40:00.000000Z",
                "newest": 8_865,
                "newestTime": "2026-11-27T09:50:00.000000Z",
                "read": [[8_862, 8_863], [8_865, 8_865]],
                "missing": [{
                    "id": 8_850,
                    "since": "2026-11-27T08:00:00.000000Z",
                    "next": "2026-11-27T10:10:00.000000Z"
                }]
            }
        });
        let mut cursor = Cursor::from_json(&stored).unwrap();
        let ledger: IdLedger = cursor.own(LEDGER).unwrap();
        cursor.set_own(LEDGER, &ledger);
        assert_eq!(cursor.to_json(), stored);
    }
}
