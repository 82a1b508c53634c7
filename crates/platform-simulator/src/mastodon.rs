//! A Mastodon instance, as in 4.5: timelines of hashtags and the public one, `Link` headers, rate limits.
//!
//! A post's `community` is the remote instance that it comes from. If a post has a text, its title is the
//! content warning. `featured` makes a boost. The author `unindexed` refuses indexing.

use serde_json::{Value, json};

use super::{
    ask::{Ask, Reply},
    ids::mastodon_id,
    instance::MastodonRules,
    names::MASTODON,
    post::Stored,
    world::World,
};

const MOST: usize = 40;

pub(super) fn answer(world: &World, ask: &Ask) -> Reply {
    let rules = {
        let mut rules = world.mastodon.get();
        if rules.requests_left == 0 {
            return limited(
                world,
                0,
                Reply::status(429, json!({"error": "Too many requests"})),
            );
        }
        rules.requests_left -= 1;
        rules.clone()
    };
    let reply = match ask.header("authorization") {
        Some(token) if token != format!("Bearer {}", rules.token) => {
            Reply::status(401, json!({"error": "The access token is invalid"}))
        }
        token => route(world, ask, &rules, token.is_some()),
    };
    limited(world, rules.requests_left - 1, reply)
}

fn limited(world: &World, left: u32, mut reply: Reply) -> Reply {
    let reset = world
        .now()
        .plus(std::time::Duration::from_secs(300))
        .to_string();
    reply.headers.push(("X-RateLimit-Limit", "300".to_owned()));
    reply
        .headers
        .push(("X-RateLimit-Remaining", left.min(299).to_string()));
    reply.headers.push(("X-RateLimit-Reset", reset));
    reply
}

fn route(world: &World, ask: &Ask, rules: &MastodonRules, known: bool) -> Reply {
    let parts: Vec<&str> = ask.path.split('/').collect();
    match parts[..] {
        ["api", "v2", "instance"] => Reply::ok(instance(rules)),
        ["api", "v1", "timelines", "public"] => timeline(world, ask, rules.live, known, None),
        ["api", "v1", "timelines", "tag", tag] => {
            let tag = percent_decoded(tag).to_lowercase();
            timeline(world, ask, rules.hashtags, known, Some(&tag))
        }
        ["api", "v1", "statuses"] if !rules.before_4_3 => {
            let ids = ask
                .all
                .iter()
                .filter(|pair| pair.0 == "id[]")
                .map(|pair| pair.1.as_str());
            let found: Vec<Value> = ids.filter_map(|id| status(world, id)).collect();
            Reply::ok(Value::Array(found))
        }
        ["api", "v1", "statuses", id] => match status(world, id) {
            Some(status) => Reply::ok(status),
            None => missing(),
        },
        ["api", "v2", "search"] if rules.closed_search && !known => {
            Reply::status(401, json!({"error": "The access token is invalid"}))
        }
        ["api", "v2", "search"] => {
            let words = ask.text("q").to_lowercase();
            let tags = tags(world).into_iter().filter(|tag| tag.contains(&words));
            let tags: Vec<Value> = tags.map(|tag| hashtag(world, &tag)).collect();
            Reply::ok(json!({"accounts": [], "statuses": [], "hashtags": tags}))
        }
        ["api", "v1", "trends", "tags"] => {
            let tags = tags(world);
            Reply::ok(tags.iter().map(|tag| hashtag(world, tag)).collect())
        }
        _ => missing(),
    }
}

fn missing() -> Reply {
    Reply::status(404, json!({"error": "Record not found"}))
}

fn instance(rules: &MastodonRules) -> Value {
    let sides = |[local, remote]: [&str; 2]| json!({"local": local, "remote": remote});
    json!({
        "domain": "mastodon.simulated", "title": "Simulated",
        "version": if rules.before_4_3 { "4.2.10" } else { "4.5.1" },
        "configuration": {"timelines_access": {
            "live_feeds": sides(rules.live), "hashtag_feeds": sides(rules.hashtags),
        }},
    })
}

fn timeline(world: &World, ask: &Ask, sides: [&str; 2], known: bool, tag: Option<&str>) -> Reply {
    if sides == ["authenticated"; 2] && !known {
        let error = "This method requires an authenticated user";
        return Reply::status(422, json!({"error": error}));
    }
    let shown = |side: &str| side == "public" || (side == "authenticated" && known);
    let wanted = |post: &Stored| {
        let remote = post.new.community.is_some();
        let asked = match (ask.text("local"), ask.text("remote")) {
            ("true", _) => !remote,
            (_, "true") => remote,
            _ => true,
        };
        asked
            && shown(sides[usize::from(remote)])
            && tag.is_none_or(|tag| tags_of(post).iter().any(|own| own == tag))
    };
    let mut posts = world.select(MASTODON, wanted);
    posts.sort_by_key(|post| std::cmp::Reverse(id(post)));
    let bound = |name: &str| ask.number(name);
    posts.retain(|post| {
        bound("max_id").is_none_or(|bound| id(post) < bound)
            && bound("since_id").is_none_or(|bound| id(post) > bound)
            && bound("min_id").is_none_or(|bound| id(post) > bound)
    });
    let limit = ask
        .number("limit")
        .and_then(|limit| usize::try_from(limit).ok());
    let limit = limit.unwrap_or(20).min(MOST);
    if bound("min_id").is_some() {
        // The statuses just after it, and not the newest.
        posts.drain(..posts.len().saturating_sub(limit));
    }
    posts.truncate(limit);
    world.serve(&posts);
    let mut reply = Reply::ok(posts.iter().map(|post| view(world, post)).collect());
    if let (Some(newest), Some(oldest)) = (posts.first(), posts.last()) {
        let path = match tag {
            Some(tag) => format!(
                "tag/{}",
                url::form_urlencoded::byte_serialize(tag.as_bytes()).collect::<String>()
            ),
            None => "public".to_owned(),
        };
        let kept = ["local", "remote", "limit"].map(|name| match ask.text(name) {
            "" => String::new(),
            value => format!("{name}={value}&"),
        });
        let address = format!(
            "{}/mastodon/api/v1/timelines/{path}?{}",
            world.base_url(),
            kept.concat()
        );
        let link = format!(
            "<{address}max_id={}>; rel=\"next\", <{address}min_id={}>; rel=\"prev\"",
            id(oldest),
            id(newest)
        );
        reply.headers.push(("Link", link));
    }
    reply
}

fn id(post: &Stored) -> u64 {
    mastodon_id(post.time, post.id)
}

fn status(world: &World, native: &str) -> Option<Value> {
    let native: u64 = native.parse().ok()?;
    let found = world.select(MASTODON, |post| id(post) == native);
    found.first().map(|post| view(world, post))
}

fn view(world: &World, post: &Stored) -> Value {
    let new = &post.new;
    let (warning, content) = match &new.text {
        Some(text) => (new.title.as_str(), text.clone()),
        None => ("", new.title.clone()),
    };
    let base = world.base_url();
    let host = new.community.as_deref();
    let acct = match host {
        Some(host) => format!("{}@{host}", new.author),
        None => new.author.clone(),
    };
    let inner = new
        .featured
        .then(|| json!({"id": "1", "content": "<p>somebody else's</p>"}));
    json!({
        "id": id(post).to_string(), "created_at": millis(post.time), "edited_at": post.edited.map(millis),
        "in_reply_to_id": null, "sensitive": !warning.is_empty(), "spoiler_text": warning,
        "visibility": "public", "language": "en",
        "uri": post.post_id, "url": format!("{base}/mastodon/@{acct}/{}", id(post)),
        "content": format!("<p>{content}</p>"), "reblog": inner,
        "account": {
            "id": (new.author.len() + 1_000).to_string(), "username": new.author, "acct": acct,
            "display_name": new.author, "indexable": new.author != "unindexed", "noindex": false,
            "url": format!("{base}/mastodon/@{acct}"),
        },
        "media_attachments": [], "mentions": [], "tags": [], "card": null, "poll": null,
    })
}

fn millis(time: domain::Timestamp) -> String {
    time.to_chrono()
        .format("%Y-%m-%dT%H:%M:%S%.3fZ")
        .to_string()
}

fn hashtag(world: &World, name: &str) -> Value {
    json!({
        "name": name, "url": format!("{}/mastodon/tags/{name}", world.base_url()),
        "history": [{"day": "1795132800", "uses": "3", "accounts": "2"}],
    })
}

fn tags(world: &World) -> Vec<String> {
    let mut tags: Vec<String> = world.posts(MASTODON).iter().flat_map(tags_of).collect();
    tags.sort_unstable();
    tags.dedup();
    tags
}

fn tags_of(post: &Stored) -> Vec<String> {
    let text = post.new.text.as_deref().unwrap_or(&post.new.title);
    let words = text.split(|c: char| c.is_whitespace() || c == '<');
    let tags = words
        .filter_map(|word| word.split_once('#'))
        .map(|(_, tag)| tag.to_lowercase());
    tags.filter(|tag| !tag.is_empty()).collect()
}

fn percent_decoded(part: &str) -> String {
    // A plus sign in a path is literal.
    let pairs = part.replace('+', "%2B");
    let mut pairs = url::form_urlencoded::parse(pairs.as_bytes());
    pairs
        .next()
        .map(|pair| pair.0.into_owned())
        .unwrap_or_default()
}
