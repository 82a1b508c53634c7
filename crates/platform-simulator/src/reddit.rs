//! Reddit's API with its tokens.
//!
//! A listing reaches back over 1,000 items and no further. `before` and `after` of a deleted post return an
//! empty list. One private subreddit in a group makes the whole group 403, a missing one 404. Without
//! `raw_json=1` markup is escaped.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    ask::{Ask, Reply},
    ids::{base36, fullname},
    lemmy::number_of,
    names::REDDIT,
    post::Stored,
    world::World,
};

const REACH: usize = 1_000;
const MAX_LIMIT: usize = 100;
const LIFETIME_SECONDS: i64 = 3_600;

/// The accepted application.
pub const CLIENT_ID: &str = "client";
pub const CLIENT_SECRET: &str = "secret";
/// A private subreddit.
pub const PRIVATE: &str = "secrets";
/// A subreddit that does not exist.
pub const MISSING: &str = "nowhere";

pub(super) fn answer(world: &World, ask: &Ask) -> Reply {
    if ask.path == "api/v1/access_token" {
        return token(world, ask);
    }
    let authorized = ask.header("authorization").is_some_and(|header| {
        let token = header.strip_prefix("bearer ");
        token.is_some_and(|token| is_valid(world, token))
    });
    let prescribed = ask
        .header("user-agent")
        .is_some_and(|agent| agent.contains("(by /u/"));
    let mut reply = match (authorized, prescribed) {
        (false, _) => refused(401, "Unauthorized"),
        // In memory, there is no header to check.
        (true, false) if ask.header("user-agent").is_some() => refused(403, "Forbidden"),
        (true, _) => data(world, ask),
    };
    let limit = [("used", "3"), ("remaining", "997.0"), ("reset", "15")];
    if authorized {
        let names = [
            "x-ratelimit-used",
            "x-ratelimit-remaining",
            "x-ratelimit-reset",
        ];
        for (name, (_, value)) in names.into_iter().zip(limit) {
            reply.headers.push((name, value.to_owned()));
        }
    }
    reply
}

/// The response says when the token expires.
fn token(world: &World, ask: &Ask) -> Reply {
    let credentials = STANDARD.encode(format!("{CLIENT_ID}:{CLIENT_SECRET}"));
    let given = ask.header("authorization");
    if given != Some(&format!("Basic {credentials}")) {
        return refused(401, "Unauthorized");
    }
    let grant = ask.form.get("grant_type").map(String::as_str);
    if !ask.is_post || grant != Some("client_credentials") {
        return Reply::ok(json!({"error": "unsupported_grant_type"}));
    }
    let lifetime = world.token_lifetime().unwrap_or(LIFETIME_SECONDS);
    let ends = world.now().micros() / 1_000_000 + lifetime;
    Reply::ok(json!({
        "access_token": format!("token-{ends}-{}", world.token_number()),
        "token_type": "bearer", "expires_in": lifetime, "scope": "*",
    }))
}

fn is_valid(world: &World, token: &str) -> bool {
    let token = token.strip_prefix("token-");
    let Some((ends, number)) = token.and_then(|token| token.split_once('-')) else {
        return false;
    };
    let ends: i64 = ends.parse().unwrap_or(0);
    ends > world.now().micros() / 1_000_000 && number == world.token_number().to_string()
}

fn refused(status: u16, message: &str) -> Reply {
    Reply::status(status, json!({"message": message, "error": status}))
}

fn number(fullname: &str) -> Option<u64> {
    let (kind, id) = fullname.split_once('_')?;
    let known = matches!(kind, "t1" | "t3");
    known.then(|| u64::from_str_radix(id, 36).ok()).flatten()
}

fn data(world: &World, ask: &Ask) -> Reply {
    let path = ask.path.trim_end_matches('/');
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["r", group, "new"] => listing(world, ask, group, false),
        ["r", group, "comments"] => listing(world, ask, group, true),
        ["api", "info"] => info(world, ask),
        ["subreddits", "search"] => search(world, ask),
        _ => refused(404, "Not Found"),
    }
}

fn subreddit_of<'a>(world: &World, post: &'a Stored, story: &'a mut Option<Stored>) -> &'a str {
    *story = world.story_of(post);
    let story = story.as_ref().unwrap_or(post);
    story.new.community.as_deref().unwrap_or("all")
}

fn listing(world: &World, ask: &Ask, group: &str, comments: bool) -> Reply {
    let members: Vec<String> = group.split('+').map(str::to_lowercase).collect();
    if members.iter().any(|member| member == PRIVATE) {
        let body = json!({"reason": "private", "message": "Forbidden", "error": 403});
        return Reply::status(403, body);
    }
    if members.iter().any(|member| member == MISSING) {
        return refused(404, "Not Found");
    }
    let own = |post: &Stored| {
        let name = subreddit_of(world, post, &mut None).to_lowercase();
        members.contains(&name)
    };
    let mut posts = if comments {
        world.comments(REDDIT)
    } else {
        world.posts(REDDIT)
    };
    posts.retain(own);
    posts.truncate(REACH);
    let at = |name: &str| {
        let anchor = ask.query.get(name)?;
        let anchor = number(anchor);
        Some(posts.iter().position(|post| Some(post.id) == anchor))
    };
    let wanted = ask.text("limit").parse().unwrap_or(25);
    let limit = usize::clamp(wanted, 1, MAX_LIMIT);
    let range = match (at("before"), at("after")) {
        (None, None) => 0..limit,
        (Some(Some(before)), _) => before.saturating_sub(limit)..before,
        (_, Some(Some(after))) => after + 1..after + 1 + limit,
        // There is nothing before or after a missing post.
        _ => 0..0,
    };
    let end = range.end.min(posts.len());
    let shown = posts.get(range.start.min(end)..end).unwrap_or_default();
    world.serve(shown);
    let more = !shown.is_empty() && end < posts.len();
    let last = shown.last().filter(|_| more);
    Reply::ok(list(
        shown.iter().map(|post| thing(world, post, ask)).collect(),
        last.map(|post| fullname(post.id, comments)),
    ))
}

fn list(children: Vec<Value>, after: Option<String>) -> Value {
    json!({"kind": "Listing", "data": {
        "after": after, "dist": children.len(), "modhash": null, "geo_filter": "",
        "children": children, "before": null,
    }})
}

/// Escapes markup in the text unless the request has `raw_json`.
fn raw(ask: &Ask, text: &str) -> String {
    if ask.text("raw_json") == "1" {
        return text.to_owned();
    }
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

fn thing(world: &World, post: &Stored, ask: &Ask) -> Value {
    let mut story = None;
    let subreddit = subreddit_of(world, post, &mut story).to_owned();
    let story = story.as_ref().unwrap_or(post);
    let seconds = post.time.micros() / 1_000_000;
    let gone = post.deleted;
    let author = if gone { "[deleted]" } else { &post.new.author };
    let text = raw(ask, post.new.text.as_deref().unwrap_or_default());
    let text = if gone { "[deleted]".to_owned() } else { text };
    let comments = format!("/r/{subreddit}/comments/{}", base36(story.id));
    let mut data = json!({
        "id": base36(post.id), "name": fullname(post.id, post.new.parent.is_some()),
        "author": author, "subreddit": subreddit, "stickied": post.new.featured,
        "subreddit_id": format!("t5_{}", base36(number_of(&subreddit).into())),
        // Eight hours ahead, like the original.
        "created": seconds + 28_800, "created_utc": f64::from(u32::try_from(seconds).unwrap_or(0)),
        "edited": post.edited.map_or(json!(false), |e| json!(e.micros() / 1_000_000)),
        "over_18": false, "removed_by_category": null,
    });
    if gone && post.new.parent.is_none() {
        data["removed_by_category"] = json!("deleted");
    }
    if !gone {
        data["author_fullname"] = json!(format!("t2_{}", base36(number_of(author).into())));
    }
    let kind = if post.new.parent.is_some() {
        data["body"] = json!(text);
        data["link_title"] = json!(story.new.title);
        data["link_id"] = json!(fullname(story.id, false));
        data["permalink"] = json!(format!("{comments}/_/{}/", base36(post.id)));
        "t1"
    } else {
        data["title"] = json!(raw(ask, &post.new.title));
        data["selftext"] = json!(text);
        data["is_self"] = json!(post.new.url.is_none());
        data["url"] = json!(post.new.url);
        data["permalink"] = json!(format!("{comments}/x/"));
        "t3"
    };
    json!({"kind": kind, "data": data})
}

fn info(world: &World, ask: &Ask) -> Reply {
    let ids = ask.text("id").split(',').take(MAX_LIMIT);
    let found: Vec<Value> = ids
        .filter_map(|name| world.even_deleted(number(name)?))
        .filter(|post| post.new.platform == REDDIT)
        .map(|post| thing(world, &post, ask))
        .collect();
    Reply::ok(list(found, None))
}

fn search(world: &World, ask: &Ask) -> Reply {
    let words = ask.text("q").to_lowercase();
    let posts = world.posts(REDDIT);
    let mut names: Vec<&str> = posts
        .iter()
        .filter_map(|post| post.new.community.as_deref())
        .filter(|name| name.to_lowercase().contains(&words))
        .collect();
    names.sort_unstable();
    names.dedup();
    let found = names.iter().map(|name| {
        json!({"kind": "t5", "data": {
            "display_name": name, "title": name, "public_description": format!("About **{name}**"),
            "subscribers": 12, "subreddit_type": "public", "url": format!("/r/{name}/"),
            "name": format!("t5_{}", base36(number_of(name).into())),
        }})
    });
    Reply::ok(list(found.collect(), None))
}
