//! Judges messages by what the services document. It shares nothing with the code under test: neither numbers nor
//! functions.
//!
//! - Slack: <https://docs.slack.dev/reference/block-kit/blocks>,
//!   <https://docs.slack.dev/reference/block-kit/composition-objects/text-object>,
//!   <https://docs.slack.dev/messaging/formatting-message-text>, and for `text`
//!   <https://docs.slack.dev/reference/methods/chat.postMessage>
//! - Mattermost: <https://developers.mattermost.com/integrate/webhooks/incoming/>
//! - Discord: <https://docs.discord.com/developers/resources/webhook#execute-webhook>,
//!   <https://docs.discord.com/developers/resources/message#embed-object-embed-limits>
//! - Teams: <https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using>

use serde_json::Value;
use url::Url;

/// Where no service says what a character is, the strictest reading: UTF-16 units.
fn length(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

fn text<'a>(value: &'a Value, what: &str) -> &'a str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{what} is no text: {value}"))
}

fn within(value: &Value, most: usize, what: &str) {
    let text = text(value, what);
    let visible = text.chars().any(|character| {
        !character.is_whitespace()
            && !character.is_control()
            && !"\u{200b}\u{3164}".contains(character)
    });
    assert!(visible, "{what} is blank: {text:?}");
    assert!(length(text) <= most, "{what} is too long: {}", length(text));
}

fn web_address(address: &str, what: &str) -> Url {
    let url = Url::parse(address).unwrap_or_else(|error| panic!("{what}: {error}: {address}"));
    assert!(
        matches!(url.scheme(), "http" | "https"),
        "{what}: {address}"
    );
    url
}

/// Slack escapes text that is not mrkdwn before it counts.
fn within_escaped(value: &Value, most: usize, what: &str) {
    within(value, most, what);
    let escaped = text(value, what)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    assert!(length(&escaped) <= most, "{what} is too long when escaped");
}

/// Each `<` begins a link to a web address; mentions begin with `<!`, `<@` or `<#`.
fn only_links(mrkdwn: &str) {
    for link in mrkdwn.split('<').skip(1) {
        let (link, _) = link.split_once('>').expect("a link is open");
        let address = link.split('|').next().unwrap_or_default();
        web_address(&address.replace("&amp;", "&"), "a link");
    }
}

pub(super) fn slack(message: &Value) {
    within(&message["text"], 40_000, "text");
    only_links(text(&message["text"], "text"));
    let Some(blocks) = message.get("blocks") else {
        return;
    };
    let blocks = blocks.as_array().expect("blocks");
    assert!((1..=50).contains(&blocks.len()));
    for block in blocks {
        match text(&block["type"], "type") {
            "header" => {
                assert_eq!(block["text"]["type"], "plain_text");
                within_escaped(&block["text"]["text"], 150, "header");
            }
            "section" => within_escaped(&block["text"]["text"], 3_000, "section"),
            "context" => {
                let elements = block["elements"].as_array().expect("elements");
                assert!((1..=10).contains(&elements.len()));
                for element in elements {
                    if element["type"] == "mrkdwn" {
                        within(&element["text"], 3_000, "context");
                        only_links(text(&element["text"], "context"));
                    } else {
                        within_escaped(&element["text"], 3_000, "context");
                    }
                }
            }
            other => panic!("unknown block {other}"),
        }
    }
}

/// Sees only `text` and `attachments` of a message for Slack.
pub(super) fn mattermost(message: &Value) {
    assert!(message.get("attachments").is_none());
    let shown = text(&message["text"], "text");
    assert!((1..=16_383).contains(&shown.chars().count()));
    for mention in ["@all", "@channel", "@here", "@everyone"] {
        assert!(!shown.contains(mention), "mentions {mention}: {shown}");
    }
    assert!(!shown.contains("]("), "has a link of its own: {shown}");
}

pub(super) fn discord(message: &Value) {
    assert_eq!(message["allowed_mentions"]["parse"], serde_json::json!([]));
    if let Some(content) = message.get("content") {
        within(content, 2_000, "content");
    }
    if let Some(name) = message.get("thread_name") {
        within(name, 100, "thread_name");
        assert!(!text(name, "thread_name").contains('\n'));
    }
    let Some(embeds) = message.get("embeds") else {
        assert!(message.get("content").is_some(), "an empty message");
        return;
    };
    let embeds = embeds.as_array().expect("embeds");
    assert!((1..=10).contains(&embeds.len()));
    let mut total = 0;
    for embed in embeds {
        for (field, most) in [
            ("/title", 256),
            ("/description", 4_096),
            ("/author/name", 256),
            ("/footer/text", 2_048),
        ] {
            if let Some(value) = embed.pointer(field) {
                within(value, most, field);
                total += length(text(value, field));
            }
        }
        for field in ["/url", "/author/url"] {
            if let Some(address) = embed.pointer(field) {
                assert!(length(text(address, field)) <= 2_048);
                let url = web_address(text(address, field), field);
                // A host without a dot is refused with the whole message.
                assert!(
                    url.host_str().is_some_and(|host| host.contains('.')),
                    "{url}"
                );
            }
        }
    }
    assert!(total <= 6_000, "all together {total}");
}

pub(super) fn teams(message: &Value) {
    let body = message.to_string();
    assert!(body.len() <= 28_000, "{} bytes", body.len());
    assert!(
        2 * length(&body) <= 28_000,
        "{} in UTF-16",
        2 * length(&body)
    );
    let card = &message["attachments"][0]["content"];
    for block in card["body"].as_array().expect("body") {
        within(&block["inlines"][0]["text"], 28_000, "run");
    }
    for action in card["actions"].as_array().into_iter().flatten() {
        web_address(text(&action["url"], "url"), "action");
    }
}

/// Whether the message has the whole address, in whichever spelling.
pub(super) fn has_address(message: &Value, address: &str) -> bool {
    fn texts(value: &Value, all: &mut Vec<String>) {
        match value {
            Value::String(text) => all.push(unescaped(text)),
            Value::Array(values) => values.iter().for_each(|value| texts(value, all)),
            Value::Object(fields) => fields.values().for_each(|value| texts(value, all)),
            _ => {}
        }
    }
    fn unescaped(text: &str) -> String {
        let text = text.replace("&amp;", "&");
        let parts = text.split('%').enumerate().map(|(index, part)| {
            let code = part.get(..2).filter(|_| index > 0);
            match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
                Some(byte) if byte.is_ascii() => format!("{}{}", char::from(byte), &part[2..]),
                _ if index > 0 => format!("%{part}"),
                _ => part.to_owned(),
            }
        });
        parts.collect()
    }
    let mut all = Vec::new();
    texts(message, &mut all);
    let address = unescaped(web_address(address, "post").as_str());
    all.iter().any(|text| text.contains(&address))
}
