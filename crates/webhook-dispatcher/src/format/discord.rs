//! Discord's webhooks: one embed.
//!
//! <https://docs.discord.com/developers/resources/webhook#execute-webhook>,
//! <https://docs.discord.com/developers/resources/message#embed-object-embed-limits>: title 256, description
//! 4,096, author 256, footer 2,048, all together 6,000. Mentions are off for the whole message
//! (`allowed_mentions`); Markdown of the post is escaped.

use domain::Post;
use serde_json::{Value, json};
use url::Url;

use super::{heading, origin, text};

const MAX_TITLE: usize = 256;
const MAX_DESCRIPTION: usize = 4_096;
const MAX_AUTHOR: usize = 256;
const MAX_FOOTER: usize = 1_000;

pub(super) fn message(post: &Post) -> Value {
    let link = public_link(&post.url);
    // The address is still readable.
    let footer = match (&link, text::link(&post.url)) {
        (None, Some(address)) => format!("{} · {address}", origin(post)),
        _ => origin(post),
    };
    let mut embed = json!({
        "title": escaped(&heading(post), MAX_TITLE),
        "footer": {"text": text::plain(&footer, MAX_FOOTER)},
        "timestamp": post.time,
    });
    if let Some(body) = &post.text {
        embed["description"] = escaped(body, MAX_DESCRIPTION).into();
    }
    let author = text::plain(&post.user.name, MAX_AUTHOR);
    if !author.is_empty() {
        embed["author"] = json!({"name": author});
        if let Some(link) = public_link(&post.user.url) {
            embed["author"]["url"] = link.into();
        }
    }
    if let Some(link) = link {
        embed["url"] = link.into();
    }
    json!({"embeds": [embed], "allowed_mentions": {"parse": []}})
}

/// Returns the address for a link. Discord refuses the whole message for one whose host has no dot.
fn public_link(address: &str) -> Option<String> {
    let link = text::link(address)?;
    let host = Url::parse(&link).ok()?.host_str()?.to_owned();
    let is_name = host.trim_end_matches('.').contains('.') && !host.starts_with('[');
    is_name.then_some(link)
}

/// Escapes the characters that Discord's Markdown interprets where they stand
/// (<https://support.discord.com/hc/en-us/articles/210298617>). Readers may see a backslash that is not needed.
fn escaped(given: &str, max: usize) -> String {
    text::escaped(given, max, |place| {
        let text::Place { before, after, .. } = *place;
        let is_word = |neighbour: Option<char>| neighbour.is_some_and(char::is_alphanumeric);
        let interpreted = match place.character {
            '\\' | '*' | '`' => true,
            '_' => !(is_word(before) && is_word(after)),
            // `~~` and `||`.
            doubled @ ('~' | '|') => before == Some(doubled) || after == Some(doubled),
            // `<@user>`, `<#channel>`, `<:emoji:1>`, `<a:emoji:1>`, `</command:1>`, `<t:time>`, `<id:page>`, `<https://…>`.
            '<' => after.is_some_and(|after| "@#:/&atihAH".contains(after)),
            // `[text](address)`.
            ']' => after == Some('('),
            '#' | '-' | '>' => place.starts_line,
            _ => false,
        };
        if interpreted { "\\" } else { "" }
    })
}
