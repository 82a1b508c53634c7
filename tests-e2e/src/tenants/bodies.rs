//! Bodies of requests, with a canary in every field that takes text.

use serde_json::{Value, json};

use super::{
    document::Operation,
    estate::keep,
    hosts::timestamp,
    requests::{FIXED, Maker},
};

/// Number of feeds on the host, each with its own path.
const FEEDS: u64 = 4;

/// Returns a body for a request to the resource `name`.
pub(super) fn body(maker: &mut Maker<'_>, operation: &Operation, name: Option<&str>) -> Value {
    match operation.id.as_str() {
        "createNamespace" => namespace(maker),
        "updateNamespace" => part(maker, namespace),
        "createConnection" => connection(maker),
        "updateConnection" => part(maker, connection),
        "createManager" => {
            let name = name.unwrap();
            // Every account begins with some of both.
            let count = u64::try_from(maker.own.all("managers").len()).unwrap();
            let number = if maker.is_plain {
                count
            } else {
                maker.chance.below(3)
            };
            match number % 3 {
                2 => automatic(maker, name),
                _ => manual(maker, name),
            }
        }
        "updateManager" => {
            let name = name.unwrap().to_owned();
            let mut patch = part(maker, |maker| manual(maker, &name));
            let fields = patch.as_object_mut().unwrap();
            fields.remove("source");
            // The first ones stay as they are, so that each account keeps one that is compiled from pages.
            let first = maker.own.all("managers").into_iter().take(FIXED);
            if first.into_iter().any(|kept| kept == name) {
                fields.remove("instructions");
            }
            patch
        }
        "previewManager" => preview(maker),
        "previewManagerDraft" => preview_draft(maker),
        "backfillManager" => json!({"notify": maker.chance.one_in(2)}),
        "updateScan" => {
            json!({"value": maker.chance.one_in(2), "labels": [maker.own.content("label")]})
        }
        "replayDeliveries" => json!({"startTime": timestamp(600)}),
        "applyManager" | "enableConnection" | "testConnection" | "retryDelivery" => json!({}),
        other => panic!("no body for the operation `{other}`: add one"),
    }
}

/// Returns some fields of a body, at least one.
fn part(maker: &mut Maker<'_>, whole: impl FnOnce(&mut Maker<'_>) -> Value) -> Value {
    let mut body = whole(maker);
    let fields = body.as_object_mut().unwrap();
    fields.retain(|field, _| field == "nickname" || maker.chance.one_in(2));
    body
}

fn mutes(maker: &mut Maker<'_>, kind: &str) -> Value {
    let value = maker.own.content(kind);
    let kind = maker.chance.pick(&["TERM", "AUTHOR", "SUBFORUM"]).unwrap();
    json!([{"type": kind, "value": value}])
}

fn namespace(maker: &mut Maker<'_>) -> Value {
    let mutes = mutes(maker, "namespacemute");
    json!({"nickname": maker.own.content("namespacenickname"), "mutes": mutes})
}

fn connection(maker: &mut Maker<'_>) -> Value {
    let own = &mut maker.own;
    let path = format!(
        "/hook/{}?key={}",
        own.secret("hookpath"),
        own.secret("hookquery")
    );
    // Any 32 letters are 24 bytes in base64.
    let signing: String = own.secret("signing") + &"x".repeat(32);
    let format = if maker.chance.one_in(4) {
        "SLACK"
    } else {
        "EARSHOT"
    };
    json!({
        "nickname": own.content("connectionnickname"), "type": "HTTP_CONNECTION",
        "url": maker.hosts.url(&path), "format": format,
        "headers": {"x-secret": own.secret("header")},
        "signingSecrets": [format!("whsec_{}", &signing[..32])],
    })
}

/// Returns the notices of a Manager in `namespace`: a Connection of it, or any of the other account.
fn notices(maker: &mut Maker<'_>, namespace: &str) -> Value {
    let namespace: Vec<&str> = namespace.split('/').take(2).collect();
    let within = format!("{}/", namespace.join("/"));
    let own = maker.own.side;
    let lender = maker.lender();
    let mut all: Vec<String> = lender
        .all("connections")
        .into_iter()
        .map(str::to_owned)
        .collect();
    if lender.side == own {
        all.retain(|name| name.starts_with(&within));
    }
    let chosen = maker.chance.pick(&all).into_iter();
    chosen
        .map(|name| json!({"type": "HTTP_REQUEST", "connection": name}))
        .collect()
}

/// Returns the name of a feed: with the own token, without any, or the public news.
fn feed(maker: &mut Maker<'_>) -> String {
    let path = format!("/feed/{}", maker.chance.below(FEEDS));
    match maker.chance.below(6) {
        0 => format!("blogs:{}", maker.hosts.url(&path)),
        1 => "hackernews:newest".to_owned(),
        _ => {
            let token = maker.own.secret("feedtoken");
            let feed = format!("blogs:{}?token={token}", maker.hosts.url(&path));
            keep(&mut maker.own.feeds, feed.clone());
            feed
        }
    }
}

fn instructions(maker: &mut Maker<'_>) -> Value {
    let feeds = match maker.is_plain {
        true => vec![private_feed(maker)],
        false => vec![feed(maker)],
    };
    let own = &mut maker.own;
    json!({
        "feeds": feeds,
        "require": [["kettle", own.content("required")]],
        "include": [{"text": own.content("term"), "weight": 1}],
        "names": [{"text": own.content("name"), "kind": "OWN", "aliases": [own.content("alias")]}],
        "exclude": [own.content("excluded")],
        "relatedTerms": [own.content("related")],
        "offers": [{"text": own.content("offer"), "weight": 1}],
        "threshold": 0,
        "brief": own.content("brief"),
    })
}

fn private_feed(maker: &mut Maker<'_>) -> String {
    let token = maker.own.secret("feedtoken");
    let feed = format!("blogs:{}?token={token}", maker.hosts.url("/feed/0"));
    keep(&mut maker.own.feeds, feed.clone());
    feed
}

fn manual(maker: &mut Maker<'_>, namespace: &str) -> Value {
    json!({
        "nickname": maker.own.content("managernickname"), "type": "FEED_MANAGER",
        "source": {"type": "FORUM"}, "instructions": instructions(maker),
        "notices": notices(maker, namespace), "mutes": mutes(maker, "managermute"),
    })
}

fn automatic(maker: &mut Maker<'_>, namespace: &str) -> Value {
    let page = format!("/page/1?token={}", maker.own.secret("pagetoken"));
    json!({
        "nickname": maker.own.content("managernickname"), "type": "FEED_MANAGER",
        "source": {"type": "FORUM"}, "notices": notices(maker, namespace),
        "input": {
            "type": "STRUCTURED", "urls": [maker.hosts.url(&page)],
            "focus": {"type": "COMPETITOR", "names": [maker.own.content("competitor")]},
        },
    })
}

fn preview_draft(maker: &mut Maker<'_>) -> Value {
    let mut body = preview(maker);
    body["source"] = json!({"type": "FORUM"});
    body["mutes"] = mutes(maker, "draftmute");
    if body["instructions"].is_null() {
        body["instructions"] = instructions(maker);
    }
    body
}

fn preview(maker: &mut Maker<'_>) -> Value {
    let posts: Vec<String> = maker.lender().posts.iter().cloned().collect();
    let form = if maker.is_plain {
        0
    } else {
        maker.chance.below(4)
    };
    match form {
        0 => {
            let time = timestamp(0);
            let word = maker.own.content("previewed");
            let user = json!({"id": word, "name": word, "url": ""});
            json!({"instructions": instructions(maker), "posts": [{
                "type": "FORUM_LINK", "time": time, "id": maker.hosts.newest_id(), "title": "kettle",
                "text": word, "url": maker.hosts.url("/read/1"), "user": user, "subforum": user,
            }]})
        }
        1 => json!({"recent": 30}),
        2 if !posts.is_empty() => {
            let chosen = maker.chance.pick(&posts).unwrap();
            json!({"urls": [chosen, maker.hosts.newest_id()], "instructions": instructions(maker)})
        }
        // A draft with a feed of the other account, whose token has become known.
        _ => {
            let feeds: Vec<String> = maker.other.feeds.iter().cloned().collect();
            let feed = maker.chance.pick(&feeds).into_iter();
            let feeds: Vec<&String> = feed.collect();
            json!({"recent": 30, "instructions": {"feeds": feeds, "require": [["kettle"]]}})
        }
    }
}
