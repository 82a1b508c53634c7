//! Version 3 of Lemmy's API, as in 0.19.

use serde_json::{Value, json};

use super::{
    ask::{Ask, Reply},
    names::LEMMY,
    post::Stored,
    world::World,
};

const MAX_LIMIT: usize = 50;
/// The community of posts that name none.
const MAIN: &str = "main";

pub(super) fn answer(world: &World, ask: &Ask) -> Reply {
    match ask.path.strip_prefix("api/v3/").unwrap_or_default() {
        "site" => site(world),
        "post/list" => list(world, ask),
        "comment/list" => comments(world, ask),
        "post" => post(world, ask),
        "comment" => comment(world, ask),
        "community" => community(world, ask),
        "search" => search(world, ask),
        _ => Reply::status(404, json!({"error": "unknown"})),
    }
}

fn site(world: &World) -> Reply {
    Reply::ok(json!({
        "site_view": {
            "site": {"id": 1, "name": "Simulated", "actor_id": format!("{}/lemmy/", world.base_url())},
            "local_site": {"private_instance": false, "federation_enabled": true},
            "counts": {"posts": world.posts(LEMMY).len()},
        },
        "admins": [],
        "version": "0.19.5",
    }))
}

fn list(world: &World, ask: &Ask) -> Reply {
    let Some(limit) = limit(ask) else {
        return Reply::status(400, json!({"error": "couldnt_get_posts"}));
    };
    let mut posts = world.posts(LEMMY);
    let wanted = ask.query.get("community_name").map(|name| local(name));
    if let Some(wanted) = wanted {
        let exists = posts.iter().any(|post| community_of(post) == wanted);
        if !exists && wanted != MAIN {
            return Reply::status(404, json!({"error": "couldnt_find_community"}));
        }
        posts.retain(|post| community_of(post) == wanted);
    }
    posts.sort_by_key(|post| !post.new.featured);
    let start = match ask.query.get("page_cursor") {
        Some(cursor) => {
            let id = cursor.strip_prefix('P');
            let id = id.and_then(|hex| u64::from_str_radix(hex, 16).ok());
            let Some(id) = id else {
                return Reply::status(400, json!({"error": "couldnt_get_posts"}));
            };
            // After a deleted post, the list continues at the same position.
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
        None => page_start(ask, limit),
    };
    let shown: Vec<&Stored> = posts.iter().skip(start).take(limit).collect();
    world.serve(shown.iter().copied());
    let last = shown.last().map(|post| format!("P{:x}", post.id));
    let views: Vec<Value> = shown.iter().map(|post| view(world, post)).collect();
    Reply::ok(json!({"posts": views, "next_page": last}))
}

/// Comments have no cursors and no pins.
fn comments(world: &World, ask: &Ask) -> Reply {
    let Some(limit) = limit(ask) else {
        return Reply::status(400, json!({"error": "couldnt_get_comments"}));
    };
    let mut comments = world.comments(LEMMY);
    if let Some(wanted) = ask.query.get("community_name").map(|name| local(name)) {
        comments.retain(|comment| {
            let story = world.story_of(comment);
            story.is_some_and(|story| community_of(&story) == wanted)
        });
    }
    let start = page_start(ask, limit);
    let shown: Vec<&Stored> = comments.iter().skip(start).take(limit).collect();
    world.serve(shown.iter().copied());
    let views: Vec<Value> = shown
        .iter()
        .filter_map(|comment| comment_view(world, comment))
        .collect();
    Reply::ok(json!({"comments": views}))
}

fn page_start(ask: &Ask, limit: usize) -> usize {
    let page = ask.text("page").parse::<usize>().unwrap_or(1).max(1);
    (page - 1).saturating_mul(limit)
}

/// `None` for a limit that Lemmy refuses.
fn limit(ask: &Ask) -> Option<usize> {
    let limit = ask.query.get("limit");
    let limit = limit.map_or(Some(10), |text| text.parse().ok());
    limit.filter(|limit| (1..=MAX_LIMIT).contains(limit))
}

/// A deleted post still exists, without its text.
fn post(world: &World, ask: &Ask) -> Reply {
    let post = world.even_deleted(ask.number("id").unwrap_or(0));
    let post = post.filter(|post| post.new.platform == LEMMY && post.new.parent.is_none());
    let Some(post) = post else {
        return Reply::status(404, json!({"error": "couldnt_find_post"}));
    };
    let mut view = view(world, &post);
    if post.deleted {
        view["post"]["name"] = json!("");
        view["post"]["body"] = Value::Null;
    } else {
        world.serve([&post]);
    }
    Reply::ok(json!({"post_view": view}))
}

fn comment(world: &World, ask: &Ask) -> Reply {
    let comment = world.even_deleted(ask.number("id").unwrap_or(0));
    let comment = comment.filter(|comment| comment.new.platform == LEMMY);
    match comment.and_then(|comment| comment_view(world, &comment)) {
        Some(view) => Reply::ok(json!({"comment_view": view})),
        None => Reply::status(404, json!({"error": "couldnt_find_comment"})),
    }
}

fn community(world: &World, ask: &Ask) -> Reply {
    let name = ask.query.get("name").map_or(MAIN, |name| local(name));
    let posts = world.posts(LEMMY);
    let own = posts.iter().filter(|post| community_of(post) == name);
    let count = own.count();
    if count == 0 && name != MAIN {
        return Reply::status(404, json!({"error": "couldnt_find_community"}));
    }
    Reply::ok(json!({
        "community_view": {
            "community": community_json(world, name),
            "subscribed": "NotSubscribed", "blocked": false,
            "counts": {"posts": count, "subscribers": 1},
        },
        "moderators": [],
    }))
}

fn search(world: &World, ask: &Ask) -> Reply {
    let Some(limit) = limit(ask) else {
        return Reply::status(400, json!({"error": "couldnt_get_posts"}));
    };
    let words = ask.text("q").to_lowercase();
    let kind = ask.query.get("type_").map_or("All", String::as_str);
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
        let posts = all.iter().filter(|post| community_of(post) == *name);
        json!({"community": community_json(world, name), "subscribed": "NotSubscribed",
               "counts": {"posts": posts.count(), "subscribers": 1}})
    });
    Reply::ok(json!({
        "type_": kind,
        "comments": [], "users": [],
        "posts": posts.iter().map(|post| view(world, post)).collect::<Vec<_>>(),
        "communities": communities.collect::<Vec<_>>(),
    }))
}

fn view(world: &World, post: &Stored) -> Value {
    json!({
        "post": post_json(post),
        "creator": creator_json(world, &post.new.author),
        "community": community_json(world, community_of(post)),
        "creator_banned_from_community": false,
        "counts": {"post_id": post.id, "comments": 0, "score": 1, "published": post.time.to_string()},
        "subscribed": "NotSubscribed", "saved": false, "read": false, "unread_comments": 0,
    })
}

/// `None` if the post it belongs to does not exist.
fn comment_view(world: &World, comment: &Stored) -> Option<Value> {
    let story = world
        .story_of(comment)
        .filter(|story| story.id != comment.id)?;
    Some(json!({
        "comment": {
            "id": comment.id, "creator_id": number_of(&comment.new.author), "post_id": story.id,
            "content": comment.new.text, "removed": false, "deleted": comment.deleted,
            "published": comment.time.to_string(), "updated": edited(comment),
            "ap_id": comment.post_id, "local": true, "path": format!("0.{}", comment.id),
            "distinguished": false, "language_id": 37,
        },
        "creator": creator_json(world, &comment.new.author),
        "post": post_json(&story),
        "community": community_json(world, community_of(&story)),
        "counts": {"comment_id": comment.id, "score": 1, "child_count": 0},
        "creator_banned_from_community": false, "subscribed": "NotSubscribed", "saved": false,
    }))
}

fn post_json(post: &Stored) -> Value {
    json!({
        "id": post.id, "name": post.new.title, "body": post.new.text, "url": post.new.url,
        "creator_id": number_of(&post.new.author), "community_id": number_of(community_of(post)),
        "removed": false, "locked": false, "deleted": post.deleted, "nsfw": false,
        "published": post.time.to_string(), "updated": edited(post), "ap_id": post.post_id,
        "local": true, "language_id": 37,
        "featured_community": post.new.featured, "featured_local": false,
    })
}

fn edited(post: &Stored) -> Option<String> {
    post.edited.map(|edited| edited.to_string())
}

fn creator_json(world: &World, author: &str) -> Value {
    json!({
        "id": number_of(author), "name": author, "banned": false, "deleted": false, "local": true,
        "published": "2023-06-11T00:00:00.000000Z", "bot_account": false, "instance_id": 1,
        "actor_id": format!("{}/lemmy/u/{author}", world.base_url()),
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

/// A number that is stable for a name.
pub(super) fn number_of(name: &str) -> u32 {
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
