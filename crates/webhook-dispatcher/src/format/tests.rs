use std::sync::Arc;

use domain::{Post, PostType, ScanName, ServiceEvent, Subforum, User, connection::Format};
use serde_json::{Value, json};
use store::deliveries::Subject;

use super::{Shape, body};

mod hostile;
mod judge;

fn name() -> ScanName {
    "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/managers/01jd3y9m1r2s3t4v5w6x7y8z9a/scans/01jd3ybz8n9p0q1r2s3t4v5w6x"
        .parse()
        .unwrap()
}

fn post(title: Option<&str>, text: Option<&str>) -> Post {
    Post {
        post_type: PostType::ForumLink,
        time: "2026-11-21T01:02:03Z".parse().unwrap(),
        id: "hackernews:1".to_owned(),
        title: title.map(str::to_owned),
        text: text.map(str::to_owned),
        url: "https://forum.example/t/1?a=b&c=d".to_owned(),
        subforum: Some(Subforum {
            id: "selfhosted".to_owned(),
            name: "Self-hosting".to_owned(),
            url: "https://forum.example/c/selfhosted".to_owned(),
        }),
        user: User {
            id: "ada".to_owned(),
            name: "ada_l".to_owned(),
            url: "https://forum.example/u/ada".to_owned(),
        },
    }
}

fn message(format: Format, post: &Post) -> Value {
    message_of(Shape::Full, format, post)
}

fn plain_message(format: Format, post: &Post) -> Value {
    message_of(Shape::Plain, format, post)
}

fn message_of(shape: Shape, format: Format, post: &Post) -> Value {
    let subject = Subject::Scan {
        name: name(),
        post: Arc::new(post.clone()),
    };
    serde_json::from_slice(&body(format, shape, &subject).unwrap()).unwrap()
}

fn message_of_event(format: Format, event: &Value) -> Value {
    let event: ServiceEvent = serde_json::from_value(event.clone()).unwrap();
    let subject = Subject::Event(Box::new(event));
    serde_json::from_slice(&body(format, Shape::Full, &subject).unwrap()).unwrap()
}

#[test]
fn service_event_is_a_sentence_in_chats_and_json_otherwise() {
    let event = json!({
        "type": "CONNECTION_DISABLED",
        "id": "01jd3yc5r6s7t8v9w0x1y2z3a4",
        "time": "2026-11-21T01:02:03.000123Z",
        "name": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/connections/01jd3yax4c5d6e7f8g9h0j1k2m",
        "nickname": "<!channel>",
        "reason": "the endpoint answered 410",
    });
    assert_eq!(message_of_event(Format::Earshot, &event), event);

    let slack = message_of_event(Format::Slack, &event);
    assert_eq!(slack["text"], "Connection “&lt;!channel&gt;” is disabled");
    assert_eq!(
        slack["blocks"][1]["text"]["text"],
        "the endpoint answered 410"
    );
    let discord = message_of_event(Format::Discord, &event);
    let embed = &discord["embeds"][0];
    assert_eq!(embed["title"], "Connection “<!channel>” is disabled");
    assert_eq!(embed["footer"]["text"], "Earshot · 2026-11-21 01:02 UTC");
    assert!(embed.get("url").is_none());
    let teams = message_of_event(Format::Teams, &event);
    let card = &teams["attachments"][0]["content"];
    assert_eq!(
        card["body"][1]["inlines"][0]["text"],
        "the endpoint answered 410"
    );
}

const HOSTILE: &str = "<!channel> <@U123> @everyone @here [free](https://evil.example) **bold** `code` \
    ||spoiler|| <script>alert(1)</script> <at>Bob</at> & \u{202e}desrever\n# heading\n- item";

#[test]
fn slack_gets_blocks() {
    let message = message(Format::Slack, &post(Some("Which backup?"), Some(HOSTILE)));
    let plain = "<!channel> <@U123> @everyone @here [free](https://evil.example) **bold** `code` ||spoiler|| \
        <script>alert(1)</script> <at>Bob</at> & desrever\n# heading\n- item";
    let expected = json!({
        "text": "<https://forum.example/t/1?a=b&amp;c=d|Which backup?>",
        "blocks": [
            {"type": "header", "text": {"type": "plain_text", "text": "Which backup?", "emoji": false}},
            {"type": "section", "text": {"type": "plain_text", "text": plain, "emoji": false}},
            {"type": "context", "elements": [
                {"type": "mrkdwn", "text": "<https://forum.example/t/1?a=b&amp;c=d|Open the post>"},
                {"type": "plain_text", "text": "Self-hosting · ada_l · 2026-11-21 01:02 UTC", "emoji": false}
            ]}
        ],
        "unfurl_links": false,
        "unfurl_media": false
    });
    assert_eq!(message, expected);
}

#[test]
fn slack_mrkdwn_has_no_markup_of_the_post() {
    let mut hostile = post(Some(HOSTILE), None);
    hostile.url = "https://evil.example/|<!here>&x".to_owned();
    let message = message(Format::Slack, &hostile);
    let fallback = message["text"].as_str().unwrap();
    let shown = fallback.strip_prefix("<https://evil.example/%7C%3C!here%3E&amp;x|");
    let shown = shown.and_then(|shown| shown.strip_suffix('>')).unwrap();
    assert!(!shown.contains(['<', '>', '|', '\n']), "{shown}");
    assert!(
        shown.starts_with("&lt;!channel&gt; &lt;@\u{200b}U123&gt;") && shown.contains(" &amp; ")
    );
    let link = &message["blocks"][1]["elements"][0]["text"];
    assert_eq!(
        link,
        "<https://evil.example/%7C%3C!here%3E&amp;x|Open the post>"
    );
}

#[test]
fn discord_gets_an_embed_without_mentions() {
    let message = message(
        Format::Discord,
        &post(Some("Which *backup*?"), Some(HOSTILE)),
    );
    let escaped = "<!channel> \\<@U123> @everyone @here [free\\](https://evil.example) \\*\\*bold\\*\\* \
        \\`code\\` \\|\\|spoiler\\|\\| <script>alert(1)\\</script> \\<at>Bob\\</at> & desrever\n\\# heading\n\\- item";
    let expected = json!({
        "embeds": [{
            "title": "Which \\*backup\\*?",
            "description": escaped,
            "url": "https://forum.example/t/1?a=b&c=d",
            "timestamp": "2026-11-21T01:02:03.000000Z",
            "author": {"name": "ada_l", "url": "https://forum.example/u/ada"},
            "footer": {"text": "Self-hosting · ada_l · 2026-11-21 01:02 UTC"}
        }],
        "allowed_mentions": {"parse": []}
    });
    assert_eq!(message, expected);
}

/// Readers would see the backslashes.
#[test]
fn discord_gets_backslashes_only_where_markdown_is_interpreted() {
    for (title, shown) in [
        (
            "[Show HN] my_tool - a #1 <cli> (v2) @home: 50% faster",
            "[Show HN] my_tool - a #1 <cli> (v2) @home: 50% faster",
        ),
        ("C:\\dir ~5 a|b 2>1 x-y +1", "C:\\\\dir ~5 a|b 2>1 x-y +1"),
        (
            "_a_ __b__ *c* ~~d~~ ||e||",
            "\\_a\\_ \\_\\_b\\_\\_ \\*c\\* \\~\\~d\\~\\~ \\|\\|e\\|\\|",
        ),
        ("# a", "\\# a"),
        ("> a", "\\> a"),
        ("[a](https://evil.example)", "[a\\](https://evil.example)"),
        ("<@1> <#2> <:x:3> <t:4>", "\\<@1> \\<#2> \\<:x:3> \\<t:4>"),
    ] {
        let message = message(Format::Discord, &post(Some(title), None));
        assert_eq!(message["embeds"][0]["title"], shown, "{title}");
    }
}

/// Discord refuses a message for a link to a host without a dot.
#[test]
fn discord_gets_no_link_that_it_refuses() {
    for (url, is_linked) in [
        ("http://localhost:8080/t/1", false),
        ("https://intranet/t/1", false),
        ("https://[::1]/t/1", false),
        ("https://forum./t/1", false),
        ("https://forum.example/t/1", true),
        ("https://192.0.2.1/t/1", true),
    ] {
        let mut post = post(Some("Which backup?"), None);
        post.url = url.to_owned();
        post.user.url = url.to_owned();
        let embed = &message(Format::Discord, &post)["embeds"][0];
        let links = [embed.get("url"), embed["author"].get("url")];
        assert!(
            links.iter().all(|link| link.is_some() == is_linked),
            "{embed}"
        );
        let footer = embed["footer"]["text"].as_str().unwrap();
        assert!(footer.contains(url) != is_linked, "{footer}");
    }
}

#[test]
fn teams_gets_a_card_without_markdown() {
    let message = message(
        Format::Teams,
        &post(None, Some("[free](https://evil.example) <at>Bob</at>")),
    );
    let run = |run: Value| json!({"type": "RichTextBlock", "inlines": [run]});
    let expected = json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": null,
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.4",
                "body": [
                    run(json!({"type": "TextRun", "text": "Post by ada_l", "weight": "Bolder", "size": "Medium"})),
                    run(json!({"type": "TextRun", "text": "[free](https://evil.example) <at>Bob</at>"})),
                    run(json!({
                        "type": "TextRun", "text": "Self-hosting · ada_l · 2026-11-21 01:02 UTC", "isSubtle": true,
                        "size": "Small"
                    })),
                ],
                "actions": [{
                    "type": "Action.OpenUrl", "title": "Open the post", "url": "https://forum.example/t/1?a=b&c=d"
                }]
            }
        }]
    });
    assert_eq!(message, expected);
}

#[test]
fn smallest_message_is_a_heading_and_the_address() {
    let post = post(Some("Which *backup*?"), Some(HOSTILE));
    let address = "https://forum.example/t/1?a=b&c=d";
    assert_eq!(
        plain_message(Format::Slack, &post),
        json!({
            "text": "Which *backup*?\n<https://forum.example/t/1?a=b&amp;c=d>",
            "unfurl_links": false,
            "unfurl_media": false
        })
    );
    assert_eq!(
        plain_message(Format::Discord, &post),
        json!({
            "content": format!("Which \\*backup\\*?\n{address}"),
            "allowed_mentions": {"parse": []}
        })
    );
    let thread = message_of(Shape::PlainThread, Format::Discord, &post);
    assert_eq!(
        thread,
        json!({
            "thread_name": "Which *backup*?",
            "content": format!("Which \\*backup\\*?\n{address}"),
            "allowed_mentions": {"parse": []}
        })
    );
    let teams = plain_message(Format::Teams, &post);
    let blocks = &teams["attachments"][0]["content"]["body"];
    let run = json!({"type": "TextRun", "text": format!("Which *backup*?\n{address}")});
    assert_eq!(
        *blocks,
        json!([{"type": "RichTextBlock", "inlines": [run]}])
    );
    assert_eq!(
        plain_message(Format::Earshot, &post),
        message(Format::Earshot, &post)
    );
}

#[test]
fn event_body_follows_the_specification() {
    let post = post(Some("Which backup?"), None);
    let message = message(Format::Earshot, &post);
    let keys: Vec<&String> = message.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 3);
    assert_eq!(message["type"], "SCAN");
    assert_eq!(message["name"], name().to_string());
    assert_eq!(message["post"], serde_json::to_value(&post).unwrap());
}
