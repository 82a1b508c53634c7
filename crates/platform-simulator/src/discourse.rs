//! Discourse's own API.
//!
//! Lists contain no text, and an excerpt only for pinned topics. By default they are sorted by last activity
//! with pinned topics first, with `order=created` by creation. The address of the next page is relative and
//! without `.json`. `posts.json` covers a window of 50 ids, even if some of them cannot be shown. A deleted
//! topic is 404, a deleted reply still has its id. A hidden post is listed without its text.

use serde_json::{Value, json};

use super::{
    ask::{Ask, Reply},
    lemmy::number_of,
    names::DISCOURSE,
    post::Stored,
    world::World,
};

const PER_PAGE: usize = 30;
const MAX_PER_PAGE: usize = 100;
const POSTS_WINDOW: u64 = 50;
/// The category of topics that name none.
const UNCATEGORIZED: &str = "uncategorized";
const HIDDEN_TEXT: &str =
    "<p>This post was flagged by the community and is temporarily hidden.</p>";

/// The key that a site that is not public accepts.
pub(super) const KEY: &str = "discourse-key";

pub(super) fn answer(world: &World, ask: &Ask) -> Reply {
    // A key is checked if it is present, even if none is needed.
    if ask.header("api-key").is_some_and(|key| key != KEY) {
        let error = "You are not permitted to view the requested resource.";
        return Reply::status(403, errors(error, "invalid_access"));
    }
    let parts: Vec<&str> = ask.path.split('/').collect();
    match parts[..] {
        ["latest.json"] => topics(world, ask, None),
        ["c", _, category, "l", "latest.json"] => topics(world, ask, Some(category)),
        ["t", file] => topic(world, file),
        ["posts.json"] => posts(world, ask),
        ["posts", file] => post(world, file),
        ["categories.json"] => categories(world),
        ["search.json"] => search(world, ask),
        _ => not_found(),
    }
}

fn errors(message: &str, kind: &str) -> Value {
    json!({"errors": [message], "error_type": kind})
}

fn not_found() -> Reply {
    let error = "The requested URL or resource could not be found.";
    Reply::status(404, errors(error, "not_found"))
}

fn category_of(topic: &Stored) -> &str {
    topic.new.community.as_deref().unwrap_or(UNCATEGORIZED)
}

fn slug(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-").to_lowercase()
}

fn topics(world: &World, ask: &Ask, category: Option<&str>) -> Reply {
    let mut topics = world.posts(DISCOURSE);
    if let Some(category) = category {
        topics.retain(|topic| number_of(category_of(topic)).to_string() == category);
        if topics.is_empty() {
            return not_found();
        }
    }
    let by_creation = ask.text("order") == "created";
    if !by_creation {
        let bumped = |topic: &Stored| topic.edited.unwrap_or(topic.published);
        topics.sort_by_key(|topic| (!topic.new.featured, std::cmp::Reverse(bumped(topic))));
    }
    let wanted = ask.text("per_page").parse().unwrap_or(PER_PAGE);
    let per_page = wanted.clamp(1, MAX_PER_PAGE);
    let page: usize = ask.text("page").parse().unwrap_or(0);
    let start = page.saturating_mul(per_page);
    let shown: Vec<&Stored> = topics.iter().skip(start).take(per_page).collect();
    let mut authors: Vec<&str> = shown.iter().map(|topic| &*topic.new.author).collect();
    authors.sort_unstable();
    authors.dedup();
    let users = authors.iter().map(
        |author| json!({"id": number_of(author), "username": author, "name": "", "trust_level": 1}),
    );
    let answered = world.comments(DISCOURSE);
    let listed = |topic: &&Stored| {
        let replies = answered
            .iter()
            .filter(|post| post.new.parent == Some(topic.id));
        listed(topic, replies.count())
    };
    let mut list = json!({
        "can_create_topic": false, "draft": null, "draft_key": "new_topic", "per_page": per_page,
        "topics": shown.iter().map(listed).collect::<Vec<_>>(),
    });
    if topics.len() > start.saturating_add(per_page) {
        let below = category.map_or("/latest".to_owned(), |id| format!("/c/x/{id}/l/latest"));
        let order = if by_creation { "&order=created" } else { "" };
        let next = format!("{below}?no_definitions=true{order}&page={}", page + 1);
        list["more_topics_url"] = json!(next);
    }
    Reply::ok(json!({"users": users.collect::<Vec<_>>(), "primary_groups": [], "topic_list": list}))
}

fn listed(topic: &Stored, replies: usize) -> Value {
    let mut listed = json!({
        "id": topic.id, "title": topic.new.title, "fancy_title": topic.new.title,
        "slug": slug(&topic.new.title), "posts_count": replies + 1,
        "reply_count": replies, "highest_post_number": replies + 1,
        "created_at": millis(topic), "bumped": true, "bumped_at": millis(topic),
        "archetype": "regular", "pinned": topic.new.featured, "visible": true, "closed": false,
        "archived": false, "category_id": number_of(category_of(topic)),
        "posters": [
            {"extras": "latest", "description": "Frequent Poster", "user_id": -1},
            {"extras": null, "description": "Original Poster", "user_id": number_of(&topic.new.author)},
        ],
    });
    if topic.new.featured {
        listed["excerpt"] = json!("A pinned topic begins like this&hellip;");
    }
    listed
}

/// Discourse's times have milliseconds.
fn millis(post: &Stored) -> String {
    let time = post.time.to_chrono();
    time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

fn numbered(file: &str) -> u64 {
    let number = file.strip_suffix(".json").unwrap_or(file);
    number.parse().unwrap_or(0)
}

fn topic(world: &World, file: &str) -> Reply {
    let topic = world.post(numbered(file));
    let topic = topic.filter(|post| post.new.platform == DISCOURSE && post.new.parent.is_none());
    let Some(topic) = topic else {
        return not_found();
    };
    world.serve([&topic].into_iter().filter(|topic| !topic.new.hidden));
    let mut first = post_json(world, &topic);
    // The first post of a topic has a separate id; raw text is included on request.
    first["id"] = json!(topic.id + 1_000_000_000_000);
    Reply::ok(json!({
        "post_stream": {"posts": [first], "stream": [topic.id]},
        "id": topic.id, "title": topic.new.title, "fancy_title": topic.new.title,
        "posts_count": 1, "created_at": millis(&topic), "visible": true, "closed": false,
        "archetype": "regular", "slug": slug(&topic.new.title),
        "category_id": number_of(category_of(&topic)), "deleted_at": null, "deleted_by": null,
    }))
}

fn post_json(world: &World, post: &Stored) -> Value {
    let topic = world.story_of(post);
    let topic = topic.as_ref().unwrap_or(post);
    let number = if topic.id == post.id { 1 } else { 2 };
    let cooked = if post.new.hidden {
        HIDDEN_TEXT
    } else {
        post.new.text.as_deref().unwrap_or_default()
    };
    json!({
        "id": post.id, "name": "", "username": post.new.author, "created_at": millis(post),
        "cooked": cooked, "post_number": number,
        "post_type": 1, "updated_at": millis(post), "topic_id": topic.id,
        "topic_slug": slug(&topic.new.title), "topic_title": topic.new.title,
        "topic_html_title": topic.new.title, "category_id": number_of(category_of(topic)),
        "user_id": number_of(&post.new.author), "hidden": post.new.hidden, "deleted_at": null,
        "user_deleted": post.deleted, "moderator": false, "admin": false,
    })
}

fn posts(world: &World, ask: &Ask) -> Reply {
    let before = ask.number("before").unwrap_or_else(|| world.max_id());
    let mut shown = world.select(DISCOURSE, |post| {
        post.id <= before && post.id + POSTS_WINDOW > before
    });
    shown.sort_by_key(|post| std::cmp::Reverse(post.id));
    world.serve(shown.iter().filter(|post| !post.new.hidden));
    let posts: Vec<Value> = shown.iter().map(|post| post_json(world, post)).collect();
    Reply::ok(json!({"latest_posts": posts}))
}

fn post(world: &World, file: &str) -> Reply {
    let post = world.even_deleted(numbered(file));
    match post.filter(|post| post.new.platform == DISCOURSE) {
        Some(post) => Reply::ok(post_json(world, &post)),
        None => not_found(),
    }
}

fn names(world: &World) -> Vec<String> {
    let topics = world.posts(DISCOURSE);
    let mut names: Vec<String> = topics.iter().map(|t| category_of(t).to_owned()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn category_json(name: &str) -> Value {
    json!({
        "id": number_of(name), "name": name, "slug": slug(name), "topic_count": 1,
        "description": format!("<p>All about {name}.</p>"),
        "description_text": format!("All about {name}."), "read_restricted": false,
    })
}

fn categories(world: &World) -> Reply {
    let categories: Vec<Value> = names(world)
        .iter()
        .map(|name| category_json(name))
        .collect();
    Reply::ok(json!({"category_list": {"can_create_category": false, "categories": categories}}))
}

fn search(world: &World, ask: &Ask) -> Reply {
    let words = ask.text("q").to_lowercase();
    let mut found = names(world);
    found.retain(|name| name.to_lowercase().contains(&words));
    let found: Vec<Value> = found.iter().map(|name| category_json(name)).collect();
    Reply::ok(
        json!({"posts": [], "topics": [], "users": [], "categories": found,
                     "grouped_search_result": {}}),
    )
}
