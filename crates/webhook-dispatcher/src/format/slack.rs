//! Slack's incoming webhooks: Block Kit.
//!
//! <https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks>,
//! <https://docs.slack.dev/reference/block-kit/blocks>. Text of the post is in `plain_text` objects, which contain
//! no markup. Where Slack only accepts mrkdwn, `&`, `<` and `>` are escaped, without which there is no mention,
//! channel or link.

use domain::Post;
use serde_json::{Value, json};

use super::{heading, origin, text};

const MAX_HEADER: usize = 150;
const MAX_SECTION: usize = 3_000;
const MAX_CONTEXT: usize = 300;
const MAX_FALLBACK: usize = 500;

pub(super) fn message(post: &Post) -> Value {
    let heading = heading(post);
    let mut blocks = vec![json!({"type": "header", "text": plain(&heading, MAX_HEADER)})];
    let body = post
        .text
        .as_deref()
        .map(|body| text::plain(body, MAX_SECTION));
    if let Some(body) = body.filter(|body| !body.is_empty()) {
        blocks.push(json!({"type": "section", "text": plain(&body, MAX_SECTION)}));
    }
    let mut elements = vec![plain(&origin(post), MAX_CONTEXT)];
    let mut fallback = mrkdwn(&heading, MAX_FALLBACK);
    if let Some(link) = text::link(&post.url) {
        let link = link.replace('&', "&amp;");
        fallback = format!("<{link}|{}>", fallback.replace('|', "¦").replace('\n', " "));
        elements.insert(
            0,
            json!({"type": "mrkdwn", "text": format!("<{link}|Open the post>")}),
        );
    }
    blocks.push(json!({"type": "context", "elements": elements}));
    json!({
        // For notifications, and for clients that show no blocks, such as Mattermost.
        "text": fallback,
        "blocks": blocks,
        "unfurl_links": false,
        "unfurl_media": false,
    })
}

/// Slack refuses an empty text.
fn plain(given: &str, max: usize) -> Value {
    let shown = text::plain(given, max);
    let shown = if shown.is_empty() {
        "-".to_owned()
    } else {
        shown
    };
    json!({"type": "plain_text", "text": shown, "emoji": false})
}

fn mrkdwn(given: &str, max: usize) -> String {
    text::plain(given, max)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
