//! Mastodon on the simulator.

use std::{sync::Arc, time::Duration};

use platform_simulator::{Fault, FaultKind, MastodonRules, NewPost};
use platforms::{Adapter, Direct, Fetch, PollError, PollLimits, mastodon::Mastodon};

use crate::platform::{Feed, minutes_ago, post};

const MASTODON: &str = "mastodon";

fn adapter(feed: &Feed, token: Option<&str>) -> Mastodon {
    let fetch: Arc<dyn Fetch> = Arc::new(Direct::new(None).unwrap());
    let url = format!("{}/mastodon", feed.simulator.base_url());
    Mastodon::new(url.parse().unwrap(), token.map(Into::into), fetch)
}

fn texts(posts: &[domain::Post]) -> Vec<String> {
    posts
        .iter()
        .map(|post| post.text.clone().unwrap_or_default())
        .collect()
}

#[tokio::test]
async fn a_status_carries_every_field() {
    let mut feed = Feed::new("mastodon:tag/crm");
    feed.publish([
        NewPost {
            text: Some("Which <a href=\"x\">#CRM</a> &amp; why?<br>tell me".into()),
            community: Some("remote.example".into()),
            time: minutes_ago(2),
            ..post(MASTODON, "work")
        },
        NewPost {
            time: minutes_ago(1),
            ..post(MASTODON, "nothing to see #other")
        },
        post(MASTODON, "local #crm"),
    ]);
    let given = feed.poll().await.posts;
    assert_eq!(
        texts(&given),
        ["work\n\nWhich #CRM & why?\ntell me", "local #crm"]
    );
    let json = serde_json::to_value(&given[0]).unwrap();
    assert_eq!(json["type"], "MICROBLOG_TWEET");
    assert!(
        json["id"]
            .as_str()
            .unwrap()
            .starts_with("https://remote.example/users/ana/statuses/")
    );
    assert_eq!(json["user"]["name"], "ana@remote.example");
    assert!(json.get("title").is_none() && json.get("subforum").is_none());
    let host = feed.simulator.addr();
    assert_eq!(given[1].user.name, format!("ana@{host}"));
    assert!(feed.poll().await.posts.is_empty());
}

#[tokio::test]
async fn boosts_and_authors_who_refuse_indexing_are_left_out() {
    let mut feed = Feed::new("mastodon:public");
    feed.publish([
        NewPost {
            featured: true,
            ..post(MASTODON, "a boost")
        },
        NewPost {
            author: "unindexed".into(),
            ..post(MASTODON, "leave me alone")
        },
        post(MASTODON, "hello"),
    ]);
    assert_eq!(texts(&feed.poll().await.posts), ["hello"]);
}

#[tokio::test]
async fn a_quiet_hashtag_costs_two_requests_and_a_burst_is_read_whole() {
    let mut feed = Feed::new("mastodon:tag/crm");
    assert!(feed.poll().await.posts.is_empty());
    let burst = (0..1_000).map(|n| post(MASTODON, format!("post {n} #crm")));
    feed.publish(burst);
    assert_eq!(feed.poll().await.posts.len(), 1_000);
    let mut quiet = Feed::new("mastodon:tag/crm");
    quiet.publish([post(MASTODON, "one #crm")]);
    assert_eq!(quiet.poll().await.posts.len(), 1);
    let before = quiet.simulator.requests("/mastodon");
    assert!(quiet.poll().await.posts.is_empty());
    assert_eq!(quiet.simulator.requests("/mastodon") - before, 2);
}

#[tokio::test]
async fn an_edit_is_the_same_status_and_deletions_show_when_asked_again() {
    for before_4_3 in [false, true] {
        let mut feed = Feed::new("mastodon:public");
        let one = NewPost {
            time: minutes_ago(1),
            ..post(MASTODON, "one")
        };
        let ids = feed.publish([one, post(MASTODON, "two")]);
        let given = feed.poll().await.posts;
        feed.simulator.edit(ids[0], "one, edited");
        assert!(feed.poll().await.posts.is_empty());
        feed.simulator.delete(ids[1]);
        feed.simulator.set_mastodon(MastodonRules {
            before_4_3,
            ..MastodonRules::default()
        });
        let mut asked: Vec<String> = given.iter().map(|post| post.id.clone()).collect();
        asked.push("https://remote.example/users/a/statuses/1".into());
        let gone = adapter(&feed, None).recheck(&asked).await.unwrap().gone;
        assert_eq!(gone, [given[1].id.clone()], "{before_4_3}");
        let strangers: Vec<String> = (0..15).map(|n| format!("{}9{n}", given[0].id)).collect();
        let refused = adapter(&feed, None).recheck(&strangers).await;
        assert!(refused.is_err(), "none of many found");
    }
}

#[tokio::test]
async fn hidden_timelines_have_a_clear_error() {
    let feed = Feed::new("mastodon:public");
    let poll = async |token: Option<&str>, what: &str| {
        let adapter = adapter(&feed, token);
        adapter
            .poll(what, None, &PollLimits::default())
            .await
            .map(|polled| (polled.posts.len(), polled.notice.is_some()))
    };
    feed.publish([
        post(MASTODON, "a #crm"),
        NewPost {
            community: Some("remote.example".into()),
            ..post(MASTODON, "b #crm")
        },
    ]);
    let rules = MastodonRules {
        live: ["disabled"; 2],
        hashtags: ["authenticated"; 2],
        ..MastodonRules::default()
    };
    feed.simulator.set_mastodon(rules.clone());
    let off = poll(None, "public").await.unwrap_err();
    assert_eq!(
        off.to_string(),
        "no such feed: the instance has turned off the public timeline"
    );
    assert!(off.is_permanent());
    let closed = poll(None, "tag/crm").await.unwrap_err();
    assert!(closed.to_string().contains("set `token`"), "{closed}");
    assert_eq!(poll(Some("good"), "tag/crm").await.unwrap(), (2, false));
    let wrong = poll(Some("expired"), "tag/crm").await.unwrap_err();
    assert!(
        matches!(wrong, PollError::Unauthorized { status: 401 }),
        "{wrong}"
    );
    feed.simulator.set_mastodon(MastodonRules {
        hashtags: ["public", "disabled"],
        ..rules
    });
    let half = poll(None, "tag/crm").await.unwrap();
    assert_eq!(half, (1, true), "with a notice");
}

#[tokio::test]
async fn timeline_is_read_while_the_settings_of_the_instance_cannot_be() {
    let mut feed = Feed::new("mastodon:public");
    let fault = Fault::new(MASTODON, FaultKind::Status, 503);
    feed.simulator.fail(fault.on("api/v2/instance").times(2));
    for text in ["one", "two"] {
        feed.publish([post(MASTODON, text)]);
        assert_eq!(texts(&feed.poll().await.posts), [text]);
    }
    // The settings are asked for again.
    feed.simulator.set_mastodon(MastodonRules {
        live: ["disabled"; 2],
        ..MastodonRules::default()
    });
    assert!(feed.try_poll().await.unwrap_err().is_permanent());
}

#[tokio::test]
async fn exhausted_limit_delays_and_loses_nothing() {
    let mut feed = Feed::new("mastodon:tag/crm");
    feed.publish([post(MASTODON, "before #crm")]);
    feed.poll().await;
    feed.publish((0..200).map(|n| post(MASTODON, format!("post {n} #crm"))));
    let rules = |requests_left| MastodonRules {
        requests_left,
        ..MastodonRules::default()
    };
    // Two pages, then nothing more: the posts read so far count.
    feed.simulator.set_mastodon(rules(2));
    let part = feed.poll().await;
    assert!(part.more && !part.posts.is_empty());
    let throttled = feed.try_poll().await.unwrap_err();
    let PollError::Throttled {
        retry_after: Some(wait),
    } = throttled
    else {
        panic!("{throttled}");
    };
    assert!(
        wait > Duration::from_secs(290) && wait <= Duration::from_secs(300),
        "{wait:?}"
    );
    feed.simulator.set_mastodon(rules(u32::MAX));
    assert_eq!(part.posts.len() + feed.poll().await.posts.len(), 200);
}

#[tokio::test]
async fn hostile_answers_are_errors_and_lose_nothing() {
    let mut feed = Feed::new("mastodon:tag/crm");
    feed.publish([post(MASTODON, "one #crm")]);
    assert_eq!(feed.poll().await.posts.len(), 1);
    feed.publish([post(MASTODON, "two #crm")]);
    for (kind, value) in [
        (FaultKind::Status, 500),
        (FaultKind::Status, 404),
        (FaultKind::Status, 403),
        (FaultKind::RetryAfter, 7),
        (FaultKind::Garbage, 0),
        (FaultKind::Reset, 0),
        (FaultKind::Huge, 6 * 1024 * 1024),
    ] {
        feed.simulator
            .fail(Fault::new(MASTODON, kind, value).on("timelines"));
        let error = feed.try_poll().await.unwrap_err();
        println!("{kind:?} {value}: {error}");
    }
    assert_eq!(texts(&feed.poll().await.posts), ["two #crm"]);
}

#[tokio::test]
async fn hashtags_are_found_by_search_or_among_the_trends() {
    let feed = Feed::new("mastodon:public");
    feed.publish([
        post(MASTODON, "a #crm_tools #rust"),
        post(MASTODON, "b #crm"),
    ]);
    for closed_search in [false, true] {
        feed.simulator.set_mastodon(MastodonRules {
            closed_search,
            ..MastodonRules::default()
        });
        let found = adapter(&feed, None).communities("crm", 10).await.unwrap();
        let whats: Vec<&str> = found.iter().map(|one| one.what.as_str()).collect();
        assert_eq!(whats, ["tag/crm", "tag/crm_tools"]);
        assert_eq!(
            (found[0].name.as_str(), found[0].members),
            ("#crm", Some(2))
        );
    }
}
