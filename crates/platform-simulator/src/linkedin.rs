//! LinkedIn's Posts API, for every organization that posts name.
//!
//! The token selects the response: `expired` is 401, `forbidden` is 403. Versions before [`OLDEST_VERSION`] are
//! 426, and a request without the headers of Rest.li 2.0 is 400.

use serde_json::{Value, json};

use super::{
    ask::{Ask, Reply},
    names::LINKEDIN,
    post::Stored,
    world::World,
};

const MAX_COUNT: usize = 100;
const OLDEST_VERSION: &str = "202511";

pub(super) fn answer(world: &World, ask: &Ask) -> Reply {
    if ask.path != "rest/posts" {
        return Reply::status(404, json!({}));
    }
    let query = &ask.query;
    let refuse = |status: u16, code: &str| {
        let error = json!({
            "status": status, "code": code, "message": "Not enough permissions or a bad request"
        });
        Reply::status(status, error)
    };
    let header = ask.header("authorization");
    let token = header.and_then(|value| value.strip_prefix("Bearer "));
    match token {
        None | Some("" | "expired") => return refuse(401, "EXPIRED_ACCESS_TOKEN"),
        Some("forbidden") => return refuse(403, "ACCESS_DENIED"),
        Some(_) => {}
    }
    match ask.header("linkedin-version") {
        None => return refuse(400, "VERSION_MISSING"),
        Some(version) if version < OLDEST_VERSION => return refuse(426, "NONEXISTENT_VERSION"),
        Some(_) => {}
    }
    let finder = ask.header("x-restli-method") == Some("FINDER")
        && ask.header("x-restli-protocol-version") == Some("2.0.0")
        && query.get("q").is_some_and(|q| q == "author");
    let number = |name: &str, or: usize| {
        let given = query.get(name).map(|text| text.parse::<usize>());
        given.unwrap_or(Ok(or)).ok()
    };
    let author = ask.text("author");
    let organization = author.strip_prefix("urn:li:organization:");
    let (Some(organization), Some(count), Some(start), true) = (
        organization,
        number("count", 10),
        number("start", 0),
        finder,
    ) else {
        return refuse(400, "ILLEGAL_ARGUMENT");
    };
    if !(1..=MAX_COUNT).contains(&count) {
        return refuse(400, "ILLEGAL_ARGUMENT");
    }
    let mut all = world.posts(LINKEDIN);
    all.retain(|post| post.new.community.as_deref() == Some(organization));
    let shown: Vec<&Stored> = all.iter().skip(start).take(count).collect();
    world.serve(shown.iter().copied());
    let elements: Vec<Value> = shown.iter().map(|post| element(post, author)).collect();
    Reply::ok(json!({
        "paging": {"start": start, "count": count, "links": [], "total": all.len()},
        "elements": elements,
    }))
}

fn element(post: &Stored, author: &str) -> Value {
    let millis = post.time.micros().div_euclid(1_000);
    let mut element = json!({
        "id": format!("urn:li:share:{}", post.id),
        "author": author,
        "commentary": post.new.text.as_ref().unwrap_or(&post.new.title),
        "visibility": "PUBLIC",
        "lifecycleState": if post.new.featured { "DRAFT" } else { "PUBLISHED" },
        "createdAt": millis, "publishedAt": millis, "lastModifiedAt": millis,
        "isReshareDisabledByAuthor": false,
        "distribution": {"feedDistribution": "MAIN_FEED", "thirdPartyDistributionChannels": []},
    });
    if let Some(source) = &post.new.url {
        element["content"] = json!({
            "article": {"source": source, "title": post.new.title, "description": ""}
        });
    }
    element
}
