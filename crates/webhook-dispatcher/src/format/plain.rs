//! The smallest message of each service: the heading and the address of the post, as text.

use domain::Post;
use serde_json::{Value, json};

use super::{discord, heading, limits::plain as limits, slack, teams, text};

pub(super) fn slack(post: &Post) -> Value {
    let link = text::link(&post.url).map(|link| format!("<{}>", link.replace('&', "&amp;")));
    let heading = slack::mrkdwn(&heading(post), limits::HEADING);
    json!({"text": lines(heading, link), "unfurl_links": false, "unfurl_media": false})
}

pub(super) fn discord(post: &Post) -> Value {
    let link = text::link(&post.url);
    // If both do not fit, the heading is cut, not the address.
    let used = link.as_deref().map_or(0, |link| text::units(link) + 1);
    let room = limits::DISCORD_CONTENT.saturating_sub(used);
    let heading = discord::escaped(&heading(post), limits::HEADING.min(room));
    json!({"content": lines(heading, link), "allowed_mentions": {"parse": []}})
}

pub(super) fn discord_thread(post: &Post) -> Value {
    let name = heading(post).replace('\n', " ");
    let mut message = discord(post);
    message["thread_name"] = text::plain(&name, limits::DISCORD_THREAD).into();
    message
}

/// A Workflow posts only what is in a card.
pub(super) fn teams(post: &Post) -> Value {
    let heading = teams::shown(&heading(post), limits::HEADING);
    let text = lines(heading, text::link(&post.url));
    teams::message_with(json!({
        "type": "AdaptiveCard",
        "version": "1.2",
        "body": [teams::block(json!({"type": "TextRun", "text": text}))],
    }))
}

fn lines(heading: String, link: Option<String>) -> String {
    match link {
        Some(link) if heading.is_empty() => link,
        Some(link) => format!("{heading}\n{link}"),
        None => heading,
    }
}
