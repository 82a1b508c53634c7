//! LinkedIn's Posts API, for every organization that posts name.
//!
//! The token selects the response: `expired` is 401, `forbidden` is 403. Versions before [`OLDEST_VERSION`] are
//! 426, and a request without the headers of Rest.li 2.0 is 400.

use std::collections::HashMap;

use actix_web::{HttpRequest, HttpResponse, Responder, web};
use serde_json::{Value, json};

use super::{names::LINKEDIN, post::Stored, world::World};

const MAX_COUNT: usize = 100;
const OLDEST_VERSION: &str = "202511";

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config.route("/rest/posts", web::get().to(posts));
}

async fn posts(
    world: web::Data<World>,
    request: HttpRequest,
    query: web::Query<HashMap<String, String>>,
) -> impl Responder {
    let header = |name: &str| {
        let value = request.headers().get(name)?;
        value.to_str().ok()
    };
    let refuse = |status: u16, code: &str| {
        let status = actix_web::http::StatusCode::from_u16(status).unwrap_or_default();
        HttpResponse::build(status).json(json!({
            "status": status.as_u16(), "code": code, "message": "Not enough permissions or a bad request"
        }))
    };
    let token = header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    match token {
        None | Some("" | "expired") => return refuse(401, "EXPIRED_ACCESS_TOKEN"),
        Some("forbidden") => return refuse(403, "ACCESS_DENIED"),
        Some(_) => {}
    }
    match header("linkedin-version") {
        None => return refuse(400, "VERSION_MISSING"),
        Some(version) if version < OLDEST_VERSION => return refuse(426, "NONEXISTENT_VERSION"),
        Some(_) => {}
    }
    let finder = header("x-restli-method") == Some("FINDER")
        && header("x-restli-protocol-version") == Some("2.0.0")
        && query.get("q").is_some_and(|q| q == "author");
    let number = |name: &str, or: usize| {
        let given = query.get(name).map(|text| text.parse::<usize>());
        given.unwrap_or(Ok(or)).ok()
    };
    let author = query.get("author").map(String::as_str).unwrap_or_default();
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
    HttpResponse::Ok().json(json!({
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
