//! A poll of posts that all match, for reasons that take much memory to list.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};

use super::{LETTERS, entry};
use crate::{
    attacks::{
        fleet::Fleet,
        host::{Entry, Host, Reply, Visit, atom},
        stage::{Account, PATIENCE, feed},
    },
    harness::eventually,
};

const MANAGERS: usize = 8;
/// The largest number of posts in a document that is not too long.
const POSTS: usize = 1_500;
/// An explanation has at most 50 of them; more would only take longer to match.
const TERMS: usize = 100;
/// Words of a term. Each is one letter, so that a term has 97 characters of the 100 that it may have.
const WORDS: usize = 49;
/// Less than the matches of a poll: the others are refused, and looked for again when there is room.
const SCANS_PER_DAY: usize = 1_000;

/// Each post contains all terms of all Managers. The account gets Scans of a part of the posts.
pub(super) async fn attack(fleet: &Fleet, attacker: &Account) {
    let is_published = Arc::new(AtomicBool::new(false));
    let published = Arc::clone(&is_published);
    let words = words();
    let text = words.join(" ");
    let host = Host::start(move |_: &Visit| {
        let posts = if published.load(Ordering::SeqCst) {
            POSTS
        } else {
            0
        };
        let entries: Vec<Entry> = (0..posts).map(|number| entry(number, &text)).collect();
        Reply::Answer(atom("matches", &entries))
    })
    .await;
    set_quota(fleet, attacker, &SCANS_PER_DAY.to_string());
    let mut managers = Vec::new();
    for _ in 0..MANAGERS {
        let manager = manager(&feed(&host.url("/feed")), &words);
        let created = attacker.create_manager(&attacker.namespace, &manager).await;
        managers.push(attacker.applied(&created, PATIENCE).await);
    }
    // The first reading is over.
    eventually("two polls", PATIENCE, async || {
        (host.count("/feed") >= 2).then_some(())
    })
    .await;
    is_published.store(true, Ordering::SeqCst);
    fleet.victim_gets_a_post().await;
    eventually("as many Scans as the quota permits", PATIENCE, async || {
        (scans_today(attacker).await == SCANS_PER_DAY).then_some(())
    })
    .await;
    for manager in &managers {
        let path = format!("/v1/{}", manager["name"].as_str().unwrap());
        eventually("the attacker is told", PATIENCE, async || {
            let reasons = attacker.get(&path).await.json()["health"]["reasons"].take();
            (reasons == json!(["quota_exceeded"])).then_some(())
        })
        .await;
    }
    // What was refused is matched again.
    set_quota(fleet, attacker, "default");
    eventually("refused posts become Scans", PATIENCE, async || {
        (scans_today(attacker).await >= 2 * SCANS_PER_DAY).then_some(())
    })
    .await;
}

fn set_quota(fleet: &Fleet, account: &Account, scans_per_day: &str) {
    let account = account.name.as_str();
    let set = fleet.stack.operator(&[
        "accounts",
        "set-quota",
        account,
        "--scans-per-day",
        scans_per_day,
    ]);
    assert_eq!(set.code, Some(0), "{set:#?}");
}

async fn scans_today(account: &Account) -> usize {
    let caller = account.get("/v1/caller").await.json();
    let used = caller["quotas"]["scansPerDay"]["used"].as_u64().unwrap();
    usize::try_from(used).unwrap()
}

/// Words whose terms are all different.
fn words() -> Vec<String> {
    let letters: Vec<char> = LETTERS.collect();
    let mut state = 1_u32;
    let words = (0..TERMS + WORDS - 1).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        letters[(state >> 16) as usize % letters.len()].to_string()
    });
    words.collect()
}

fn manager(feed: &str, words: &[String]) -> Value {
    let terms = words.windows(WORDS);
    let include: Vec<Value> = terms
        .map(|words| json!({"text": words.join(" "), "weight": 1}))
        .collect();
    json!({
        "nickname": "matches", "type": "FEED_MANAGER", "source": {"type": "FORUM"},
        "instructions": {"feeds": [feed], "threshold": 1, "include": include},
    })
}
