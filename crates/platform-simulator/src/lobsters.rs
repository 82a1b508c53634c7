//! The simulated site: pages of 25 stories, tags, and single stories.

use chrono::{FixedOffset, SecondsFormat};
use serde_json::{Value, json};

use super::{
    ask::{Ask, Reply},
    names::LOBSTERS,
    post::Stored,
    world::World,
};

const PER_PAGE: usize = 25;

pub(super) fn answer(world: &World, ask: &Ask) -> Reply {
    let Some(path) = ask.path.strip_suffix(".json") else {
        return Reply::status(404, json!({}));
    };
    let (list, number) = match path.rsplit_once("/page/") {
        Some((list, number)) => (list, number.parse().ok()),
        None => (path, Some(1_usize)),
    };
    let first = number.and_then(|number| number.max(1).checked_sub(1)?.checked_mul(PER_PAGE));
    match (list.split_once('/'), first) {
        (None, Some(first)) if list == "newest" => page(world, world.posts(LOBSTERS), first),
        (Some(("t", tag)), Some(first)) => {
            let mut stories = world.posts(LOBSTERS);
            stories.retain(|story| tag_of(story) == Some(tag));
            page(world, stories, first)
        }
        (Some(("s", id)), _) => story(world, id),
        _ => Reply::status(404, json!({})),
    }
}

fn page(world: &World, mut stories: Vec<Stored>, first: usize) -> Reply {
    stories.drain(..first.min(stories.len()));
    stories.truncate(PER_PAGE);
    world.serve(&stories);
    Reply::ok(stories.iter().map(|story| shown(world, story)).collect())
}

fn story(world: &World, id: &str) -> Reply {
    let found = id.parse().ok().and_then(|id| world.post(id));
    match found.filter(|story| story.new.platform == LOBSTERS) {
        Some(story) => Reply::ok(shown(world, &story)),
        None => Reply::status(404, json!({})),
    }
}

fn shown(world: &World, story: &Stored) -> Value {
    let own = format!("{}/{LOBSTERS}/s/{}", world.base_url(), story.id);
    let time = chrono::DateTime::from_timestamp_micros(story.time.micros());
    let chicago = FixedOffset::west_opt(6 * 3_600);
    let time = time.zip(chicago).map(|(time, zone)| {
        let time = time.with_timezone(&zone);
        time.to_rfc3339_opts(SecondsFormat::Micros, false)
    });
    json!({
        "short_id": story.id.to_string(), "short_id_url": own, "comments_url": own,
        "created_at": time, "title": story.new.title,
        "url": story.new.url.as_deref().unwrap_or_default(), "score": 1, "flags": 0, "comment_count": 0,
        "description": story.new.text.as_deref().unwrap_or_default(),
        "description_plain": story.new.text.as_deref().unwrap_or_default(),
        "submitter_user": story.new.author, "user_is_author": false,
        "tags": tag_of(story).into_iter().collect::<Vec<_>>(),
    })
}

fn tag_of(story: &Stored) -> Option<&str> {
    story.new.community.as_deref()
}
