//! The Graph API's feed of a Page, for every Page that posts name.
//!
//! The token selects the response: `expired` is code 190, `forbidden` is code 10, `busy` is a used-up limit.
//! Like the original, it puts the token into the address of the next page.

use serde_json::{Value, json};

use super::{
    ask::{Ask, Reply},
    names::FACEBOOK,
    post::Stored,
    world::World,
};

const MAX_LIMIT: usize = 100;

pub(super) fn answer(world: &World, ask: &Ask) -> Reply {
    match *ask.path.split('/').collect::<Vec<_>>().as_slice() {
        [page, "feed"] => feed(world, "v25.0", page, ask),
        [version, page, "feed"] => feed(world, version, page, ask),
        _ => Reply::status(404, json!({})),
    }
}

fn feed(world: &World, version: &str, page: &str, ask: &Ask) -> Reply {
    let query = &ask.query;
    let header = ask.header("authorization");
    let token = header.and_then(|value| value.strip_prefix("Bearer "));
    let token = token.or(query.get("access_token").map(String::as_str));
    let refuse = |code: u16, kind: &str| {
        let error = json!({
            "message": "Something about the request", "type": kind, "code": code, "fbtrace_id": "A1"
        });
        Reply::status(400, json!({"error": error}))
    };
    let token = match token {
        None | Some("" | "expired") => return refuse(190, "OAuthException"),
        Some("forbidden") => return refuse(10, "OAuthException"),
        Some(token) => token,
    };
    let limit = query.get("limit").map_or(Ok(25), |text| text.parse());
    let Ok(limit @ 1..=MAX_LIMIT) = limit else {
        return refuse(100, "OAuthException");
    };
    let mut all = world.posts(FACEBOOK);
    all.retain(|post| post.new.community.as_deref() == Some(page));
    if let Some(since) = query.get("since").and_then(|text| text.parse().ok()) {
        all.retain(|post| post.seconds() >= since);
    }
    let after = query.get("after").and_then(|cursor| place(cursor));
    if let Some((seconds, id)) = after {
        all.retain(|post| (post.seconds(), post.id) < (seconds, id));
    }
    let shown: Vec<&Stored> = all.iter().take(limit).collect();
    world.serve(shown.iter().copied());
    let mut answer = json!({"data": shown.iter().map(|post| item(post, page)).collect::<Vec<_>>()});
    if let Some(last) = shown.last() {
        let cursor = format!("{}x{}", last.seconds(), last.id);
        answer["paging"] = json!({"cursors": {"before": "x", "after": cursor}});
        // Also if nothing follows: the page after the last one is empty.
        if shown.len() == limit {
            let base = world.base_url();
            answer["paging"]["next"] = json!(format!(
                "{base}/facebook/{version}/{page}/feed?access_token={token}&limit={limit}&after={cursor}"
            ));
        }
    }
    let used = if token == "busy" { 100 } else { 12 };
    let usage = json!({"call_count": used, "total_cputime": 0, "total_time": 1});
    let mut reply = Reply::ok(answer);
    reply.headers.push(("x-app-usage", usage.to_string()));
    reply
}

fn place(cursor: &str) -> Option<(i64, u64)> {
    let (seconds, id) = cursor.split_once('x')?;
    Some((seconds.parse().ok()?, id.parse().ok()?))
}

fn item(post: &Stored, page: &str) -> Value {
    let time = post.time.to_chrono().format("%Y-%m-%dT%H:%M:%S+0000");
    let id = format!("{page}_{}", post.id);
    let mut item = json!({
        "id": id,
        "created_time": time.to_string(),
        "updated_time": time.to_string(),
        "permalink_url": format!("https://www.facebook.com/{page}/posts/{}", post.id),
        "from": {"name": post.new.author, "id": page},
    });
    match &post.new.text {
        Some(text) => item["message"] = json!(text),
        // The Page's action, described by the platform.
        None => item["story"] = json!(post.new.title),
    }
    item
}
