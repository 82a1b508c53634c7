//! Algolia's and Firebase's APIs of Hacker News.

use std::collections::HashMap;

use actix_web::{HttpResponse, Responder, web};
use serde_json::{Value, json};

use super::{
    HACKER_NEWS,
    world::{Stored, World},
};

/// Algolia's ceiling, over all pages of a query.
const CEILING: usize = 1_000;

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/api/v1/search_by_date", web::get().to(search))
        .route("/api/v1/search", web::get().to(search))
        .route("/api/v1/items/{id}", web::get().to(whole_item))
        .route("/v0/maxitem.json", web::get().to(max_item))
        .route("/v0/item/{id}.json", web::get().to(item))
        .route("/v0/{list}.json", web::get().to(list));
}

async fn search(
    world: web::Data<World>,
    query: web::Query<HashMap<String, String>>,
) -> impl Responder {
    let text = |name: &str| query.get(name).map_or("", String::as_str);
    let number = |name: &str| text(name).parse::<usize>().ok();
    let per_page = number("hitsPerPage").unwrap_or(20).min(CEILING);
    let page = number("page").unwrap_or(0);
    let words = text("query").to_lowercase();
    let mut posts = world.posts(HACKER_NEWS);
    posts.retain(|post| {
        post.is_indexed()
            && tagged(post, text("tags"))
            && within(post, text("numericFilters"))
            && post.new.title.to_lowercase().contains(&words)
    });
    let total = posts.len();
    let shown = posts
        .iter()
        .take(CEILING)
        .skip(page.saturating_mul(per_page))
        .take(per_page);
    let shown: Vec<&Stored> = shown.collect();
    world.serve(shown.iter().copied());
    web::Json(json!({
        "hits": shown.iter().map(|post| hit(post)).collect::<Vec<_>>(),
        "nbHits": total,
        "page": page,
        "nbPages": total.min(CEILING).div_ceil(per_page.max(1)),
        "hitsPerPage": per_page,
        "processingTimeMS": 1,
        "query": words,
    }))
}

fn hit(post: &Stored) -> Value {
    json!({
        "created_at": post.time.to_string(),
        "created_at_i": post.seconds(),
        "title": post.new.title,
        "url": post.new.url,
        "author": post.new.author,
        "points": 1,
        "story_text": post.new.text,
        "comment_text": null,
        "num_comments": 0,
        "story_id": null,
        "_tags": tags(post),
        "objectID": post.id.to_string(),
    })
}

fn tags(post: &Stored) -> Vec<String> {
    let mut tags = vec![
        kind(post).to_owned(),
        format!("author_{}", post.new.author),
        format!("story_{}", post.id),
    ];
    for (prefix, tag) in [("Ask HN", "ask_hn"), ("Show HN", "show_hn")] {
        if post.new.title.starts_with(prefix) {
            tags.push(tag.to_owned());
        }
    }
    tags
}

fn kind(post: &Stored) -> &'static str {
    match post.new.community.as_deref() {
        Some("job") => "job",
        _ => "story",
    }
}

/// A comma means "and", parentheses "or" within them.
fn tagged(post: &Stored, wanted: &str) -> bool {
    let own = tags(post);
    let mut rest = wanted;
    while !rest.is_empty() {
        let (any, after) = match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            Some(split) => split,
            None => rest.split_once(',').unwrap_or((rest, "")),
        };
        rest = after.trim_start_matches(',');
        if !any.split(',').any(|one| own.iter().any(|tag| tag == one)) {
            return false;
        }
    }
    true
}

fn within(post: &Stored, filters: &str) -> bool {
    filters
        .split(',')
        .filter(|filter| !filter.is_empty())
        .all(|filter| {
            let Some(condition) = filter.strip_prefix("created_at_i") else {
                return true;
            };
            let digits = condition.trim_start_matches(['<', '>', '=']);
            let (own, Ok(bound)) = (post.seconds(), digits.parse::<i64>()) else {
                return false;
            };
            match &condition[..condition.len() - digits.len()] {
                ">=" => own >= bound,
                ">" => own > bound,
                "<=" => own <= bound,
                "<" => own < bound,
                _ => own == bound,
            }
        })
}

async fn whole_item(world: web::Data<World>, id: web::Path<u64>) -> impl Responder {
    match found(&world, *id) {
        Some(post) => {
            world.serve([&post]);
            HttpResponse::Ok().json(json!({
                "id": post.id, "created_at": post.time.to_string(), "created_at_i": post.seconds(),
                "type": kind(&post), "author": post.new.author, "title": post.new.title,
                "url": post.new.url, "text": post.new.text, "points": 1, "children": [],
            }))
        }
        None => HttpResponse::NotFound().json(json!({"status": 404, "error": "Not Found"})),
    }
}

fn found(world: &World, id: u64) -> Option<Stored> {
    world
        .post(id)
        .filter(|post| post.new.platform == HACKER_NEWS)
}

async fn max_item(world: web::Data<World>) -> impl Responder {
    web::Json(world.max_id())
}

async fn item(world: web::Data<World>, id: web::Path<u64>) -> impl Responder {
    let readable = !world.reads_null(*id);
    let post = found(&world, *id).filter(|_| readable);
    world.serve(&post);
    web::Json(post.map(|post| {
        let mut item = json!({
            "by": post.new.author, "descendants": 0, "id": post.id, "score": 1,
            "time": post.seconds(), "title": post.new.title, "type": kind(&post),
        });
        // Firebase leaves out what is not there.
        if let Some(text) = &post.new.text {
            item["text"] = json!(text);
        }
        if let Some(url) = &post.new.url {
            item["url"] = json!(url);
        }
        item
    }))
}

async fn list(world: web::Data<World>, list: web::Path<String>) -> impl Responder {
    let (tag, most) = match list.as_str() {
        "newstories" => ("story", 500),
        "askstories" => ("ask_hn", 200),
        "showstories" => ("show_hn", 200),
        "jobstories" => ("job", 200),
        _ => return HttpResponse::NotFound().json(json!({"error": "Permission denied"})),
    };
    let posts = world.posts(HACKER_NEWS);
    let listed = posts.iter().filter(|post| tagged(post, tag));
    let mut ids: Vec<u64> = listed.map(|post| post.id).collect();
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids.truncate(most);
    HttpResponse::Ok().json(ids)
}
