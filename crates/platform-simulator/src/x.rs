//! X's API, version 2: recent search, look-ups of posts and of users, and their costs.
//!
//! A query finds posts that contain all its words; operators are ignored. An edit is a new id. Tokens: `good`;
//! `poor` has no credits and `narrow` no access; all others are refused. `featured` makes a repost.

use std::time::Duration;

use domain::Timestamp;
use serde_json::{Value, json};

use super::{
    ask::{Ask, Reply},
    ids::{EPOCH_MILLIS, x_id},
    names::X,
    post::Stored,
    world::World,
};

const REACH: Duration = Duration::from_hours(7 * 24);
const CUT: usize = 280;

pub(super) fn answer(world: &World, ask: &Ask) -> Reply {
    let mut reply = match ask.header("authorization") {
        Some("Bearer good") => route(world, ask),
        Some("Bearer poor") => problem(402, "CreditsDepleted"),
        Some("Bearer narrow") => problem(403, "Client Forbidden"),
        _ => problem(401, "Unauthorized"),
    };
    let reset = world.now().micros() / 1_000_000 + 900;
    reply.headers.push(("x-rate-limit-limit", "450".to_owned()));
    reply
        .headers
        .push(("x-rate-limit-remaining", "449".to_owned()));
    reply
        .headers
        .push(("x-rate-limit-reset", reset.to_string()));
    reply
}

fn problem(status: u16, title: &str) -> Reply {
    Reply::status(
        status,
        json!({"title": title, "status": status, "type": "about:blank"}),
    )
}

fn route(world: &World, ask: &Ask) -> Reply {
    match ask.path.as_str() {
        "2/tweets/search/recent" => search(world, ask),
        "2/tweets" => look_up(world, ask),
        "2/users" => users(world, ask),
        _ => problem(404, "Not Found"),
    }
}

fn search(world: &World, ask: &Ask) -> Reply {
    let wrong = |message: &str| {
        Reply::status(
            400,
            json!({"errors": [{"message": message}], "title": "Invalid Request"}),
        )
    };
    let most = ask.number("max_results").unwrap_or(10);
    if !(10..=100).contains(&most) {
        return wrong("The `max_results` query parameter value is not between 10 and 100");
    }
    let now = world.now();
    let reach = now.minus(REACH);
    let since = ask.number("since_id");
    if since.is_some_and(|since| time_of(since).is_none_or(|time| time < reach)) {
        return wrong("'since_id' must be a tweet id created after [seven days ago]");
    }
    let start = ask
        .query
        .get("start_time")
        .map(|text| text.parse::<Timestamp>());
    let start = match start {
        Some(Ok(start)) if start < reach || start > now => return wrong("Invalid 'start_time'"),
        Some(Err(_)) => return wrong("Invalid 'start_time'"),
        Some(Ok(start)) => Some(start),
        None => None,
    };
    let words: Vec<String> = ask
        .text("query")
        .split_whitespace()
        .filter(|word| !word.contains(':') && *word != "OR")
        .map(|word| word.trim_matches('"').to_lowercase())
        .collect();
    let token = ask
        .text("next_token")
        .strip_prefix('t')
        .and_then(|id| id.parse::<u64>().ok());
    let until = ask.number("until_id");
    let mut posts = world.select(X, |post| {
        let text = text_of(post).to_lowercase();
        words.iter().all(|word| text.contains(word))
            && post.is_indexed(now)
            && post.time >= start.unwrap_or(reach)
            && since.is_none_or(|since| latest(post) > since)
            && until.is_none_or(|until| latest(post) < until)
            && token.is_none_or(|token| latest(post) < token)
    });
    posts.sort_by_key(|post| std::cmp::Reverse(latest(post)));
    let all = posts.len();
    posts.truncate(usize::try_from(most).unwrap_or_default());
    world.serve(&posts);
    sell(world, &posts, most);
    if posts.is_empty() {
        return Reply::ok(json!({"meta": {"result_count": 0}}));
    }
    let ids: Vec<String> = posts.iter().map(|post| latest(post).to_string()).collect();
    let mut meta = json!({
        "newest_id": ids.first(), "oldest_id": ids.last(), "result_count": posts.len(),
    });
    if all > posts.len() {
        meta["next_token"] = json!(format!("t{}", ids.last().map_or("", String::as_str)));
    }
    Reply::ok(json!({"data": posts.iter().map(view).collect::<Vec<_>>(), "meta": meta}))
}

fn sell(world: &World, posts: &[Stored], asked: u64) {
    let day = world.now().micros().div_euclid(86_400_000_000);
    let mut sold = world.x.sold();
    sold.bill.served += posts.len();
    sold.bill.most_asked = sold.bill.most_asked.max(asked);
    for post in posts {
        sold.posts.insert((latest(post).to_string(), day));
    }
}

fn look_up(world: &World, ask: &Ask) -> Reply {
    let ids: Vec<u64> = ask
        .text("ids")
        .split(',')
        .filter_map(|id| id.parse().ok())
        .collect();
    if ids.is_empty() || ids.len() > 100 {
        return problem(400, "Invalid Request");
    }
    let found = world.select(X, |post| {
        ids.contains(&latest(post)) || ids.contains(&first(post))
    });
    sell(world, &found, ids.len() as u64);
    let missing = ids.iter().filter(|id| {
        !found
            .iter()
            .any(|post| latest(post) == **id || first(post) == **id)
    });
    let errors: Vec<Value> = missing
        .map(|id| {
            json!({
                "resource_id": id.to_string(), "value": id.to_string(), "parameter": "ids",
                "resource_type": "tweet", "title": "Not Found Error",
                "type": "https://api.twitter.com/2/problems/resource-not-found",
            })
        })
        .collect();
    let mut answer = json!({});
    if !found.is_empty() {
        answer["data"] = found.iter().map(view).collect();
    }
    if !errors.is_empty() {
        answer["errors"] = json!(errors);
    }
    Reply::ok(answer)
}

fn users(world: &World, ask: &Ask) -> Reply {
    let all = world.select(X, |_| true);
    let ids = ask.text("ids").split(',');
    let users: Vec<Value> = ids
        .filter_map(|id| all.iter().find(|post| author_id(&post.new.author) == id))
        .map(|post| {
            let name = &post.new.author;
            json!({"id": author_id(name), "username": name, "name": name})
        })
        .collect();
    world.x.sold().bill.users += users.len();
    Reply::ok(json!({"data": users}))
}

fn view(post: &Stored) -> Value {
    let text = text_of(post)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let short: String = text.chars().take(CUT).collect();
    let mut view = json!({
        "id": latest(post).to_string(), "text": short, "author_id": author_id(&post.new.author), "lang": "en",
        "created_at": post.edited.unwrap_or(post.time).to_chrono().format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        "edit_history_tweet_ids": [first(post).to_string()],
    });
    if post.edited.is_some() {
        view["edit_history_tweet_ids"] = json!([first(post).to_string(), latest(post).to_string()]);
    }
    if short.len() < text.len() {
        view["note_tweet"] = json!({"text": text});
    }
    if post.new.featured {
        view["referenced_tweets"] = json!([{"type": "retweeted", "id": "20"}]);
    }
    view
}

fn text_of(post: &Stored) -> &str {
    post.new.text.as_deref().unwrap_or(&post.new.title)
}

fn first(post: &Stored) -> u64 {
    x_id(post.time, post.id)
}

fn latest(post: &Stored) -> u64 {
    post.edited
        .map_or_else(|| first(post), |edited| x_id(edited, post.id))
}

fn time_of(id: u64) -> Option<Timestamp> {
    let millis = i64::try_from(id >> 22).ok()? + EPOCH_MILLIS;
    Timestamp::from_micros(millis.checked_mul(1_000)?)
}

/// A number that is stable for a name.
fn author_id(name: &str) -> String {
    let sum = name.bytes().fold(2_166_136_261_u32, |sum, byte| {
        (sum ^ u32::from(byte)).wrapping_mul(16_777_619)
    });
    sum.to_string()
}
