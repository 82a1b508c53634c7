//! Microsoft Teams, the webhook of a Workflow: a message with an Adaptive Card.
//!
//! <https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook>,
//! <https://adaptivecards.io/explorer/RichTextBlock.html>. Text of the post is in text runs, which, unlike text
//! blocks, do not support Markdown. A mention needs an entity, and the message has none.

use domain::Post;
use serde_json::{Value, json};

use super::{heading, limits::teams as limits, origin, text};

pub(super) fn message(post: &Post) -> Value {
    let mut body = vec![block(json!({
        "type": "TextRun", "text": shown(&heading(post), limits::HEADING), "weight": "Bolder", "size": "Medium",
    }))];
    if let Some(given) = post.text.as_deref().filter(|given| !text::is_blank(given)) {
        body.push(block(
            json!({"type": "TextRun", "text": shown(given, limits::TEXT)}),
        ));
    }
    body.push(block(json!({
        "type": "TextRun", "text": shown(&origin(post), limits::ORIGIN), "isSubtle": true, "size": "Small",
    })));
    let mut card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
    });
    if let Some(link) = text::link(&post.url) {
        card["actions"] =
            json!([{"type": "Action.OpenUrl", "title": "Open the post", "url": link}]);
    }
    message_with(card)
}

pub(super) fn message_with(card: Value) -> Value {
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": null,
            "content": card,
        }],
    })
}

pub(super) fn block(run: Value) -> Value {
    json!({"type": "RichTextBlock", "inlines": [run]})
}

/// A run must not be empty.
pub(super) fn shown(given: &str, max: usize) -> String {
    text::or_dash(text::cut(given, max, json_bytes, |place, shown| {
        shown.push(place.character);
    }))
}

/// Bytes of the text in JSON, in UTF-8 or UTF-16, whichever is longer.
fn json_bytes(spelled: &str) -> usize {
    let bytes = |character: char| match character {
        '"' | '\\' | '\n' => 4,
        other => other.len_utf8().max(2 * other.len_utf16()),
    };
    spelled.chars().map(bytes).sum()
}
