//! Slack's incoming webhooks: Block Kit.
//!
//! <https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks>. Text of the post is in `plain_text`
//! objects, which contain no markup. Where Slack only accepts mrkdwn, `&`, `<` and `>` are escaped, without which there
//! is no mention, channel or link.
//!
//! Mattermost, Rocket.Chat and others take the same webhooks, but show only `text`, as Markdown.

use domain::Post;
use serde_json::{Value, json};

use super::{heading, limits::slack as limits, origin, text};

pub(super) fn message(post: &Post) -> Value {
    let heading = heading(post);
    let link = text::link(&post.url).map(|link| link.replace('&', "&amp;"));
    let title = mrkdwn(&heading, limits::FALLBACK);
    let text = match &link {
        Some(link) => format!("<{link}|{}>", title.replace('|', "¦").replace('\n', " ")),
        None => title,
    };
    let open = link.map(|link| format!("<{link}|Open the post>"));
    // Slack would refuse the blocks. Without them it shows `text`.
    if open.as_ref().is_some_and(|open| open.len() > limits::LINK) {
        return json!({"text": text, "unfurl_links": false, "unfurl_media": false});
    }
    let mut blocks = vec![json!({"type": "header", "text": plain(&heading, limits::HEADER)})];
    if let Some(body) = post.text.as_deref().filter(|body| !text::is_blank(body)) {
        blocks.push(json!({"type": "section", "text": plain(body, limits::SECTION)}));
    }
    let mut elements = vec![plain(&origin(post), limits::CONTEXT)];
    if let Some(open) = open {
        elements.insert(0, json!({"type": "mrkdwn", "text": open}));
    }
    blocks.push(json!({"type": "context", "elements": elements}));
    json!({
        // For notifications, and for clients that show no blocks.
        "text": text,
        "blocks": blocks,
        "unfurl_links": false,
        "unfurl_media": false,
    })
}

/// Slack refuses an empty text, and counts characters after it has escaped them.
fn plain(given: &str, max: usize) -> Value {
    let escaped_units = |spelled: &str| spelled.chars().map(escaped_len).sum();
    let shown = text::or_dash(text::cut(given, max, escaped_units, |place, shown| {
        shown.push(place.character);
    }));
    json!({"type": "plain_text", "text": shown, "emoji": false})
}

fn escaped_len(character: char) -> usize {
    escape(character).map_or(character.len_utf16(), str::len)
}

fn escape(character: char) -> Option<&'static str> {
    match character {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        _ => None,
    }
}

pub(super) fn mrkdwn(given: &str, max: usize) -> String {
    text::cut(given, max, text::units, |place, shown| {
        match escape(place.character) {
            Some(escape) => shown.push_str(escape),
            None => shown.push(place.character),
        }
        // Mattermost notifies a whole channel for `@all`, and makes a link of `[text](address)`.
        let follows = |test: fn(char) -> bool| place.after.is_some_and(test);
        if place.character == '@' && follows(|after| after.is_alphanumeric())
            || place.character == ']' && follows(|after| matches!(after, '(' | '[' | ':'))
        {
            shown.push('\u{200b}');
        }
    })
}
