//! Algolia's and Firebase's APIs of Hacker News.

use serde_json::{Value, json};

use super::{
    ask::{Ask, Reply},
    names::HACKER_NEWS,
    post::Stored,
    world::World,
};

/// Algolia's maximum number of hits, over all pages of a query.
const CEILING: usize = 1_000;

pub(super) fn answer(world: &World, ask: &Ask) -> Reply {
    let id = |text: &str| text.trim_end_matches(".json").parse().unwrap_or(0);
    let parts: Vec<&str> = ask.path.split('/').collect();
    match parts[..] {
        ["api", "v1", "search_by_date" | "search"] => Reply::ok(search(world, ask)),
        ["api", "v1", "items", item] => whole_item(world, id(item)),
        ["v0", "maxitem.json"] => Reply::ok(json!(world.max_id())),
        ["v0", "item", file] => Reply::ok(item(world, id(file))),
        ["v0", file] => list(world, file),
        _ => Reply::status(404, json!({"status": 404, "error": "Not Found"})),
    }
}

fn search(world: &World, ask: &Ask) -> Value {
    let number = |name: &str| ask.text(name).parse::<usize>().ok();
    let per_page = number("hitsPerPage").unwrap_or(20).min(CEILING);
    let page = number("page").unwrap_or(0);
    let words = ask.text("query").to_lowercase();
    let now = world.now();
    let posts = world.select(HACKER_NEWS, |post| {
        !post.new.hidden
            && post.is_indexed(now)
            && tagged(post, ask.text("tags"))
            && within(post, ask.text("numericFilters"))
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
    json!({
        "hits": shown.iter().map(|post| hit(world, post)).collect::<Vec<_>>(),
        "nbHits": total,
        "page": page,
        "nbPages": total.min(CEILING).div_ceil(per_page.max(1)),
        "hitsPerPage": per_page,
        "processingTimeMS": 1,
        "query": words,
    })
}

fn hit(world: &World, post: &Stored) -> Value {
    let mut hit = json!({
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
    });
    if let Some(parent) = post.new.parent {
        let story = world.story_of(post);
        hit["comment_text"] = hit["story_text"].take();
        hit["title"] = Value::Null;
        hit["parent_id"] = json!(parent);
        hit["story_id"] = json!(story.as_ref().map(|story| story.id));
        hit["story_title"] = json!(story.map(|story| story.new.title.clone()));
    }
    hit
}

fn tags(post: &Stored) -> Vec<String> {
    let mut tags = vec![kind(post).to_owned(), format!("author_{}", post.new.author)];
    if post.new.parent.is_some() {
        return tags;
    }
    tags.push(format!("story_{}", post.id));
    for (prefix, tag) in [("Ask HN", "ask_hn"), ("Show HN", "show_hn")] {
        if post.new.title.starts_with(prefix) {
            tags.push(tag.to_owned());
        }
    }
    tags
}

fn kind(post: &Stored) -> &'static str {
    match post.new.community.as_deref() {
        _ if post.new.parent.is_some() => "comment",
        Some("job") => "job",
        _ => "story",
    }
}

/// A comma means "and", parentheses mean "or".
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

fn whole_item(world: &World, id: u64) -> Reply {
    match world
        .post(id)
        .filter(|post| post.new.platform == HACKER_NEWS && !post.new.hidden)
    {
        Some(post) => {
            world.serve([&post]);
            Reply::ok(json!({
                "id": post.id, "created_at": post.time.to_string(), "created_at_i": post.seconds(),
                "type": kind(&post), "author": post.new.author, "title": post.new.title,
                "url": post.new.url, "text": post.new.text, "points": 1, "children": [],
            }))
        }
        None => Reply::status(404, json!({"status": 404, "error": "Not Found"})),
    }
}

/// Firebase leaves out empty fields.
fn item(world: &World, id: u64) -> Value {
    let readable = !world.reads_null(id);
    let known = world.even_deleted(id);
    let known = known.filter(|post| readable && !post.new.hidden);
    let Some(post) = known else {
        return Value::Null;
    };
    // All simulated platforms share one sequence of ids: those of the others read as deleted here.
    if post.deleted || post.new.platform != HACKER_NEWS {
        return json!({"id": id, "deleted": true, "time": post.seconds(), "type": kind(&post)});
    }
    world.serve([&post]);
    let mut item = json!({
        "by": post.new.author, "id": id, "time": post.seconds(), "type": kind(&post),
    });
    match post.new.parent {
        Some(parent) => item["parent"] = json!(parent),
        None => {
            item["title"] = json!(post.new.title);
            item["descendants"] = json!(0);
            item["score"] = json!(1);
        }
    }
    if let Some(text) = &post.new.text {
        item["text"] = json!(text);
    }
    if let Some(url) = &post.new.url {
        item["url"] = json!(url);
    }
    item
}

fn list(world: &World, file: &str) -> Reply {
    let (tag, most) = match file {
        "newstories.json" => ("story", 500),
        "askstories.json" => ("ask_hn", 200),
        "showstories.json" => ("show_hn", 200),
        "jobstories.json" => ("job", 200),
        _ => return Reply::status(404, json!({"error": "Permission denied"})),
    };
    let posts = world.select(HACKER_NEWS, |post| !post.new.hidden && tagged(post, tag));
    let mut ids: Vec<u64> = posts.iter().map(|post| post.id).collect();
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids.truncate(most);
    Reply::ok(json!(ids))
}
