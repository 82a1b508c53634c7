//! Version 3 of Lemmy's API, as 0.19 answers it.

use std::collections::HashMap;

use actix_web::{HttpResponse, Responder, web};
use serde_json::{Value, json};

use super::{
    LEMMY,
    world::{Stored, World},
};

const MAX_LIMIT: usize = 50;
/// Where posts go that name no community.
const MAIN: &str = "main";

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/site", web::get().to(site))
        .route("/post/list", web::get().to(list))
        .route("/post", web::get().to(post))
        .route("/community", web::get().to(community))
        .route("/search", web::get().to(search));
}

type Query = web::Query<HashMap<String, String>>;

async fn site(world: web::Data<World>) -> impl Responder {
    web::Json(json!({
        "site_view": {
            "site": {"id": 1, "name": "Simulated", "actor_id": format!("{}/lemmy/", world.base_url())},
            "local_site": {"private_instance": false, "federation_enabled": true},
            "counts": {"posts": world.posts(LEMMY).len()},
        },
        "admins": [],
        "version": "0.19.5",
    }))
}

async fn list(world: web::Data<World>, query: Query) -> impl Responder {
    let Some(limit) = limit(&query) else {
        return HttpResponse::BadRequest().json(json!({"error": "couldnt_get_posts"}));
    };
    let mut posts = world.posts(LEMMY);
    let wanted = query.get("community_name").map(|name| local(name));
    if let Some(wanted) = &wanted {
        let exists = posts.iter().any(|post| community_of(post) == *wanted);
        if !exists && *wanted != MAIN {
            return HttpResponse::NotFound().json(json!({"error": "couldnt_find_community"}));
        }
        posts.retain(|post| community_of(post) == *wanted);
    }
    posts.sort_by_key(|post| !post.new.featured);
    let start = match query.get("page_cursor") {
        Some(cursor) => {
            let id = cursor.strip_prefix('P');
            let id = id.and_then(|hex| u64::from_str_radix(hex, 16).ok());
            let Some(id) = id else {
                return HttpResponse::BadRequest().json(json!({"error": "couldnt_get_posts"}));
            };
            // After a deleted post the list goes on where it stood.
            posts.iter().position(|post| post.id == id).map_or_else(
                || {
                    posts
                        .iter()
                        .filter(|post| post.new.featured || post.id > id)
                        .count()
                },
                |at| at + 1,
            )
        }
        None => {
            let page = query
                .get("page")
                .and_then(|page| page.parse::<usize>().ok());
            (page.unwrap_or(1).max(1) - 1).saturating_mul(limit)
        }
    };
    let shown: Vec<&Stored> = posts.iter().skip(start).take(limit).collect();
    world.serve(shown.iter().copied());
    let last = shown.last().map(|post| format!("P{:x}", post.id));
    let views: Vec<Value> = shown.iter().map(|post| view(&world, post)).collect();
    HttpResponse::Ok().json(json!({"posts": views, "next_page": last}))
}

/// `None` for a limit that Lemmy refuses.
fn limit(query: &Query) -> Option<usize> {
    let limit = query
        .get("limit")
        .map_or(Some(10), |text| text.parse().ok());
    limit.filter(|limit| (1..=MAX_LIMIT).contains(limit))
}

async fn post(world: web::Data<World>, query: Query) -> impl Responder {
    let id = query.get("id").and_then(|id| id.parse().ok());
    let post = id.and_then(|id| world.post(id));
    match post.filter(|post| post.new.platform == LEMMY) {
        Some(post) => {
            world.serve([&post]);
            HttpResponse::Ok().json(json!({"post_view": view(&world, &post)}))
        }
        None => HttpResponse::NotFound().json(json!({"error": "couldnt_find_post"})),
    }
}

async fn community(world: web::Data<World>, query: Query) -> impl Responder {
    let name = query.get("name").map_or(MAIN, |name| local(name));
    let posts = world.posts(LEMMY);
    let count = posts
        .iter()
        .filter(|post| community_of(post) == name)
        .count();
    if count == 0 && name != MAIN {
        return HttpResponse::NotFound().json(json!({"error": "couldnt_find_community"}));
    }
    HttpResponse::Ok().json(json!({
        "community_view": {
            "community": community_json(&world, name),
            "subscribed": "NotSubscribed", "blocked": false,
            "counts": {"posts": count, "subscribers": 1},
        },
        "moderators": [],
    }))
}

async fn search(world: web::Data<World>, query: Query) -> impl Responder {
    let Some(limit) = limit(&query) else {
        return HttpResponse::BadRequest().json(json!({"error": "couldnt_get_posts"}));
    };
    let words = query.get("q").map(|q| q.to_lowercase()).unwrap_or_default();
    let kind = query.get("type_").map_or("All", String::as_str);
    let all = world.posts(LEMMY);
    let holds = |text: &str| text.to_lowercase().contains(&words);
    let posts: Vec<&Stored> = all
        .iter()
        .filter(|post| holds(&post.new.title) || post.new.text.as_deref().is_some_and(holds))
        .filter(|_| matches!(kind, "All" | "Posts"))
        .take(limit)
        .collect();
    let mut names: Vec<&str> = all
        .iter()
        .map(community_of)
        .filter(|name| holds(name))
        .collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|_| matches!(kind, "All" | "Communities"));
    names.truncate(limit);
    world.serve(posts.iter().copied());
    let communities = names.iter().map(|name| {
        json!({"community": community_json(&world, name), "subscribed": "NotSubscribed",
               "counts": {"posts": 1, "subscribers": 1}})
    });
    HttpResponse::Ok().json(json!({
        "type_": kind,
        "comments": [], "users": [],
        "posts": posts.iter().map(|post| view(&world, post)).collect::<Vec<_>>(),
        "communities": communities.collect::<Vec<_>>(),
    }))
}

fn view(world: &World, post: &Stored) -> Value {
    let author = &post.new.author;
    json!({
        "post": {
            "id": post.id, "name": post.new.title, "body": post.new.text, "url": post.new.url,
            "creator_id": number_of(author), "community_id": number_of(community_of(post)),
            "removed": false, "locked": false, "deleted": false, "nsfw": false,
            "published": post.time.to_string(), "ap_id": post.post_id, "local": true, "language_id": 37,
            "featured_community": post.new.featured, "featured_local": false,
        },
        "creator": {
            "id": number_of(author), "name": author, "banned": false, "deleted": false, "local": true,
            "published": "2023-06-11T00:00:00.000000Z", "bot_account": false, "instance_id": 1,
            "actor_id": format!("{}/lemmy/u/{author}", world.base_url()),
        },
        "community": community_json(world, community_of(post)),
        "creator_banned_from_community": false,
        "counts": {"post_id": post.id, "comments": 0, "score": 1, "published": post.time.to_string()},
        "subscribed": "NotSubscribed", "saved": false, "read": false, "unread_comments": 0,
    })
}

fn community_json(world: &World, name: &str) -> Value {
    json!({
        "id": number_of(name), "name": name, "title": name, "description": null,
        "removed": false, "deleted": false, "nsfw": false, "local": true, "hidden": false,
        "published": "2023-06-11T00:00:00.000000Z", "instance_id": 1, "visibility": "Public",
        "actor_id": format!("{}/lemmy/c/{name}", world.base_url()),
    })
}

/// A number that stays with a name.
fn number_of(name: &str) -> u32 {
    let sum = name.bytes().fold(2_166_136_261_u32, |sum, byte| {
        (sum ^ u32::from(byte)).wrapping_mul(16_777_619)
    });
    sum >> 1
}

fn community_of(post: &Stored) -> &str {
    post.new.community.as_deref().unwrap_or(MAIN)
}

/// `name@instance` names the same community here.
fn local(name: &str) -> &str {
    name.split('@').next().unwrap_or(name)
}
