//! Microsoft Teams, the webhook of a Workflow: a message with an Adaptive Card.
//!
//! <https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook>,
//! <https://adaptivecards.io/explorer/RichTextBlock.html>. Text of the post is in text runs, which, unlike text
//! blocks, do not support Markdown. A mention needs an entity, and the message has none. A message may have 28 KB.

use domain::Post;
use serde_json::{Value, json};

use super::{heading, origin, text};

const MAX_HEADING: usize = 300;
/// Maximum length of a text. In the worst case of JSON and UTF-8 a unit takes three bytes, because control
/// characters are left out.
const MAX_TEXT: usize = 7_000;
const MAX_ORIGIN: usize = 300;

pub(super) fn message(post: &Post) -> Value {
    let mut body = vec![block(json!({
        "type": "TextRun", "text": shown(&heading(post), MAX_HEADING), "weight": "Bolder", "size": "Medium",
    }))];
    if let Some(given) = post
        .text
        .as_deref()
        .map(str::trim)
        .filter(|given| !given.is_empty())
    {
        body.push(block(
            json!({"type": "TextRun", "text": shown(given, MAX_TEXT)}),
        ));
    }
    body.push(block(json!({
        "type": "TextRun", "text": shown(&origin(post), MAX_ORIGIN), "isSubtle": true, "size": "Small",
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
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": null,
            "content": card,
        }],
    })
}

fn block(run: Value) -> Value {
    json!({"type": "RichTextBlock", "inlines": [run]})
}

/// A run must not be empty.
fn shown(given: &str, max: usize) -> String {
    let shown = text::plain(given, max);
    if shown.is_empty() {
        "-".to_owned()
    } else {
        shown
    }
}
