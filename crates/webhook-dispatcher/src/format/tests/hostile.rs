//! Random posts of hostile text, judged by the services' documented limits.

use domain::{Post, connection::Format};
use proptest::{prelude::*, sample::select};

use super::{Shape, judge, message, message_of, plain_message, post};

const FRAGMENTS: &[&str] = &[
    "a",
    "word ",
    "😀",
    "👨\u{200d}👩\u{200d}👧",
    "漢",
    "مرحبا ",
    "e\u{301}",
    "\u{300}",
    "\u{202e}",
    "\u{2066}",
    "\0",
    "\u{1b}[31m",
    "\u{7f}",
    "\u{85}",
    "\u{2028}",
    "\u{200b}",
    "\u{3164}",
    "\u{feff}",
    "\u{ffff}",
    "\n",
    "\r\n",
    "\t",
    " ",
    "\"",
    "\\",
    "'",
    "&",
    "<",
    ">",
    "|",
    "_",
    "~",
    "*",
    "`",
    "``` ",
    "# ",
    "- ",
    "> ",
    "[a](https://evil.example)",
    "![i](https://evil.example/i.png)",
    "[a]: https://evil.example",
    "<https://evil.example|a>",
    "<!channel>",
    "<@U1>",
    "@everyone ",
    "@here ",
    "@channel ",
    "@all ",
    "<at>Bob</at>",
    "http://localhost:8080/t/1 ",
    "{}",
    "${a}",
    "%s",
    "%3C",
];

const HOSTS: &[&str] = &[
    "forum.example",
    "localhost:1313",
    "forum:8080",
    "intranet",
    "[::1]",
    "127.0.0.1",
    "a..b",
    "a_b.example",
    "münchen.example",
    "user:secret@forum.example",
    "forum.",
    "-.example",
    "forum.example:99",
];

/// Up to some 100 kB.
fn text() -> impl Strategy<Value = String> {
    let times = prop_oneof![8 => 1..10_usize, 4 => 10..600_usize, 1 => 10_000..30_000_usize];
    let part = (select(FRAGMENTS), times).prop_map(|(fragment, times)| fragment.repeat(times));
    prop::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
}

fn address() -> impl Strategy<Value = String> {
    let tail = select(
        &[
            "a", "&", "é", "(", "[", "]", "|", "%2F", "😀", "_", "\"", "\\",
        ][..],
    );
    let times = prop_oneof![4 => 0..40_usize, 1 => 200..2_100_usize];
    let web = (select(HOSTS), tail, times)
        .prop_map(|(host, tail, times)| format!("http://{host}/t?a={}", tail.repeat(times)));
    let other = select(
        &[
            "",
            "javascript:alert(1)",
            "at://did:plc:x/y",
            "//forum.example/",
            "urn:x",
        ][..],
    );
    prop_oneof![9 => web, 1 => other.prop_map(str::to_owned)]
}

fn hostile() -> impl Strategy<Value = Post> {
    let texts = (
        prop::option::of(text()),
        prop::option::of(text()),
        text(),
        text(),
    );
    let addresses = (address(), address());
    (texts, addresses).prop_map(|((title, body, user, place), (url, user_url))| {
        let mut post = post(title.as_deref(), body.as_deref());
        (post.url, post.user.url, post.user.name) = (url, user_url, user);
        if let Some(subforum) = &mut post.subforum {
            subforum.name = place;
        }
        post
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn hostile_posts_keep_to_documented_limits(post in hostile()) {
        let slack = message(Format::Slack, &post);
        judge::slack(&slack);
        judge::mattermost(&slack);
        let discord = message(Format::Discord, &post);
        judge::discord(&discord);
        let teams = message(Format::Teams, &post);
        judge::teams(&teams);
        let plain = [Format::Slack, Format::Discord, Format::Teams].map(|format| plain_message(format, &post));
        judge::slack(&plain[0]);
        judge::mattermost(&plain[0]);
        judge::discord(&plain[1]);
        judge::teams(&plain[2]);
        let thread = message_of(Shape::PlainThread, Format::Discord, &post);
        judge::discord(&thread);
        // Formats spell an address with escapes of three characters.
        let is_web = post.url.starts_with("http") && url::Url::parse(&post.url).is_ok();
        let is_short = url::Url::parse(&post.url).is_ok_and(|url| url.as_str().len() < 660);
        if is_web && is_short {
            for message in [&slack, &discord, &teams].into_iter().chain(&plain).chain([&thread]) {
                prop_assert!(judge::has_address(message, &post.url), "{} is missing", post.url);
            }
        }
    }
}

/// An address of 2,000 characters that is 10,000 when escaped: Slack refuses the blocks.
#[test]
fn slack_gets_text_alone_if_the_link_does_not_fit_its_blocks() {
    let mut post = post(Some("Which backup?"), None);
    post.url = format!("https://forum.example/?{}", "&".repeat(1_900));
    let message = message(Format::Slack, &post);
    judge::slack(&message);
    judge::mattermost(&message);
    assert!(message.get("blocks").is_none());
    assert!(
        message["text"]
            .as_str()
            .unwrap()
            .ends_with("|Which backup?>")
    );
    assert!(judge::has_address(&message, &post.url));
}

/// Address and text share the limit of a whole embed.
#[test]
fn discord_gets_the_whole_address_of_a_host_without_a_dot() {
    let mut post = post(Some(&"t".repeat(300)), Some(&"b".repeat(5_000)));
    post.user.name = "u".repeat(300);
    post.url = format!("http://localhost/{}", "a".repeat(1_900));
    let message = message(Format::Discord, &post);
    judge::discord(&message);
    assert!(judge::has_address(&message, &post.url));
    let plain = plain_message(Format::Discord, &post);
    judge::discord(&plain);
    assert!(judge::has_address(&plain, &post.url));
}

#[test]
fn posts_without_visible_text_have_a_heading() {
    let mut post = post(Some("\u{200b}\u{3164}"), Some("\u{202e}\u{200d}"));
    post.user.name = "\u{200b}".to_owned();
    judge::slack(&message(Format::Slack, &post));
    judge::discord(&message(Format::Discord, &post));
    judge::teams(&message(Format::Teams, &post));
    judge::slack(&plain_message(Format::Slack, &post));
    judge::discord(&plain_message(Format::Discord, &post));
    judge::discord(&message_of(Shape::PlainThread, Format::Discord, &post));
    judge::teams(&plain_message(Format::Teams, &post));
}
