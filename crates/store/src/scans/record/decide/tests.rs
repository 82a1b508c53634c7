use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::Duration,
};

use domain::{Id, ManagerName, Match, Post, Timestamp};
use test_support::post;

use super::{Decisions, Limits, decide};
use crate::{
    feed_post_ids,
    scans::{
        likes::{Key, Likes},
        quota::Quota,
        record::{
            NewScan, Origin, ScanCounter,
            accounts::{Account, Capacity},
            posts::post_key,
        },
    },
};

/// Limits of a Manager on its own.
#[derive(Clone, Copy)]
struct Given {
    max_per_day: Option<u32>,
    /// Scans that its account may still have today.
    capacity: u32,
    collapses: bool,
}

const UNLIMITED: Given = Given {
    max_per_day: None,
    capacity: 100,
    collapses: false,
};

fn manager() -> ManagerName {
    ManagerName {
        namespace: Id::generate(),
        manager: Id::generate(),
    }
}

fn posts(ids: &[&str]) -> Vec<Post> {
    ids.iter().map(|id| post(id, "Title")).collect()
}

fn matches(manager: ManagerName, posts: &[Post]) -> Vec<NewScan<'_>> {
    let one = |post| NewScan {
        manager,
        post,
        matched: Match {
            score: 1.0,
            terms: Vec::new(),
            focus: None,
            spans: Vec::new(),
            signals: None,
            judged: false,
            reader: None,
        },
    };
    posts.iter().map(one).collect()
}

/// Returns the decisions, and how much they spent of the Manager's daily limit. All keys are fresh.
fn decide_given<'m, 'a>(
    given: Given,
    matches: &'m [NewScan<'a>],
    origin: Origin<'_>,
) -> (Decisions<'m, 'a>, u32) {
    let keys: Vec<(Key, &Post)> = matches
        .iter()
        .map(|one| ((one.manager, post_key(one.post)), one.post))
        .collect();
    let fresh: BTreeSet<Key> = keys.iter().map(|(key, _)| *key).collect();
    let account = Account {
        id: Id::generate(),
        quota: Some(7 + given.capacity),
        scans: 7,
    };
    let manager = matches[0].manager;
    let midnight = Timestamp::UNIX_EPOCH.to_chrono();
    let quota = given.max_per_day.map(|max| Quota::new(max, midnight, None));
    let compared = if given.collapses { &keys[..] } else { &[] };
    let mut counter = ScanCounter::new(0);
    let mut limits = Limits {
        quotas: HashMap::from([(manager, quota)]),
        capacity: Capacity::new(&mut counter, HashMap::from([(manager, account)])),
        likes: Likes::of(compared),
    };
    let decisions = decide(matches, fresh, origin, &mut limits);
    let quota = limits.quotas[&manager].as_ref();
    (decisions, quota.map_or(0, |quota| quota.state.made))
}

fn scans<'a>(decisions: &Decisions<'_, 'a>) -> Vec<&'a str> {
    let scans = decisions.scans.iter();
    scans.map(|(_, one)| one.post.id.as_str()).collect()
}

fn refused<'a>(decisions: &Decisions<'_, 'a>) -> Vec<&'a str> {
    let refused = decisions.refused.iter();
    refused.map(|(_, post)| post.id.as_str()).collect()
}

fn keys(manager: ManagerName, posts: &[Post]) -> Vec<Key> {
    posts.iter().map(|post| (manager, post_key(post))).collect()
}

#[test]
fn fresh_keys_become_scans_once_and_others_are_ignored() {
    let manager = manager();
    let posts = posts(&["b", "known", "a", "b"]);
    let matches = matches(manager, &posts);
    let fresh = keys(manager, &[posts[0].clone(), posts[2].clone()]);
    let mut counter = ScanCounter::new(100);
    let mut limits = Limits {
        quotas: HashMap::new(),
        capacity: Capacity::new(&mut counter, HashMap::new()),
        likes: Likes::default(),
    };
    let fresh = fresh.into_iter().collect();
    let decisions = decide(&matches, fresh, Origin::Poll, &mut limits);
    assert_eq!(scans(&decisions), ["b", "a"]);
    assert!(decisions.released.is_empty());
}

#[test]
fn near_duplicate_keeps_its_key_and_spends_nothing() {
    let manager = manager();
    let mut posts = posts(&["a", "b", "c"]);
    posts[1].url = posts[0].url.clone();
    let matches = matches(manager, &posts);
    let given = Given {
        max_per_day: Some(2),
        capacity: 2,
        collapses: true,
    };
    let (decisions, spent) = decide_given(given, &matches, Origin::Poll);
    assert_eq!((scans(&decisions), spent), (vec!["a", "c"], 2));
    assert!(decisions.released.is_empty());
    let (decisions, _) = decide_given(UNLIMITED, &matches, Origin::Poll);
    assert_eq!(scans(&decisions), ["a", "b", "c"]);
}

#[test]
fn match_beyond_the_managers_limit_is_suppressed() {
    let manager = manager();
    let posts = posts(&["a", "b"]);
    let matches = matches(manager, &posts);
    let none = HashMap::new();
    let past = Origin::Past {
        silently: false,
        catch_up: &none,
    };
    // Past posts spend at most half of a day.
    for (origin, max, released) in [
        (Origin::Poll, 1, vec![]),
        (Origin::FirstReading, 2, keys(manager, &posts[1..])),
        (past, 2, keys(manager, &posts[1..])),
    ] {
        let given = Given {
            max_per_day: Some(max),
            ..UNLIMITED
        };
        let (decisions, spent) = decide_given(given, &matches, origin);
        assert_eq!((scans(&decisions), spent), (vec!["a"], 1), "{origin:?}");
        assert_eq!(decisions.suppressed, [manager], "{origin:?}");
        assert_eq!(decisions.released, released, "{origin:?}");
        assert!(decisions.refused.is_empty(), "{origin:?}");
    }
}

#[test]
fn match_beyond_the_accounts_quota_is_refused_and_its_key_released() {
    let manager = manager();
    let posts = posts(&["a", "b"]);
    let matches = matches(manager, &posts);
    let none = HashMap::new();
    let past = Origin::Past {
        silently: true,
        catch_up: &none,
    };
    for origin in [Origin::Poll, Origin::FirstReading, past] {
        let given = Given {
            capacity: 1,
            ..UNLIMITED
        };
        let (decisions, _) = decide_given(given, &matches, origin);
        assert_eq!(scans(&decisions), ["a"], "{origin:?}");
        assert_eq!(refused(&decisions), ["b"], "{origin:?}");
        assert_eq!(decisions.released, keys(manager, &posts[1..]), "{origin:?}");
        assert!(decisions.suppressed.is_empty(), "{origin:?}");
    }
}

#[test]
fn racing_account_counts_as_one_without_scans_left() {
    let manager = manager();
    let posts = posts(&["a"]);
    let matches = matches(manager, &posts);
    let account = Account {
        id: Id::generate(),
        quota: None,
        scans: 0,
    };
    let mut counter = ScanCounter::new(100).refusing_accounts(HashSet::from([account.id]));
    let mut limits = Limits {
        quotas: HashMap::from([(manager, None)]),
        capacity: Capacity::new(&mut counter, HashMap::from([(manager, account)])),
        likes: Likes::default(),
    };
    let fresh = keys(manager, &posts).into_iter().collect();
    let decisions = decide(&matches, fresh, Origin::Poll, &mut limits);
    assert_eq!((scans(&decisions).len(), refused(&decisions).len()), (0, 1));
}

#[test]
fn refused_post_spends_the_managers_limit_only_when_it_is_new() {
    let posts = posts(&["a", "b"]);
    let matches = matches(manager(), &posts);
    let none = HashMap::new();
    let past = Origin::Past {
        silently: false,
        catch_up: &none,
    };
    let given = Given {
        max_per_day: Some(1),
        capacity: 0,
        collapses: false,
    };
    let (decisions, spent) = decide_given(given, &matches, Origin::Poll);
    assert_eq!((refused(&decisions), spent), (vec!["a"], 1));
    assert_eq!(decisions.suppressed.len(), 1);
    let (decisions, spent) = decide_given(given, &matches, past);
    assert_eq!((refused(&decisions), spent), (vec!["a", "b"], 0));
    assert!(decisions.suppressed.is_empty());
}

#[test]
fn silent_and_already_admitted_posts_spend_nothing_of_the_managers_limit() {
    let manager = manager();
    let mut posts = posts(&["a", "b", "c"]);
    let since = posts[2].time;
    posts[0].time = since.minus(Duration::from_secs(2));
    posts[1].time = since.minus(Duration::from_secs(1));
    let matches = matches(manager, &posts);
    let given = Given {
        max_per_day: Some(2),
        ..UNLIMITED
    };
    let none = HashMap::new();
    let silent = Origin::Past {
        silently: true,
        catch_up: &none,
    };
    let (decisions, spent) = decide_given(given, &matches, silent);
    assert_eq!((scans(&decisions), spent), (vec!["a", "b", "c"], 0));
    let catch_up = HashMap::from([(manager, since)]);
    let past = Origin::Past {
        silently: false,
        catch_up: &catch_up,
    };
    let (decisions, spent) = decide_given(given, &matches, past);
    assert_eq!((scans(&decisions), spent), (vec!["a", "c"], 1));
}

#[test]
fn refused_posts_are_recorded_since_the_oldest_of_a_week() {
    let (one, other) = (manager(), manager());
    let now = Timestamp::now();
    let day = Duration::from_hours(24);
    let mut posts = posts(&["a", "b", "c"]);
    posts[0].time = now.minus(day);
    posts[1].time = now.minus(day * 2);
    posts[2].time = now.minus(day * 400);
    let decisions = Decisions {
        refused: vec![(one, &posts[0]), (one, &posts[1]), (other, &posts[2])],
        ..Decisions::default()
    };
    let since = |origin| {
        let since = decisions.refused_since(origin, now).into_iter();
        since.collect::<HashMap<_, _>>()
    };
    let week_ago = now.minus(feed_post_ids::MAX_AGE);
    let expected = |of_other: Timestamp| {
        HashMap::from([
            (one, posts[1].time.to_chrono()),
            (other, of_other.to_chrono()),
        ])
    };
    assert_eq!(since(Origin::Poll), expected(week_ago));
    assert_eq!(since(Origin::FirstReading), expected(posts[2].time));
    let none = HashMap::new();
    let past = Origin::Past {
        silently: false,
        catch_up: &none,
    };
    assert!(since(past).is_empty());
}
