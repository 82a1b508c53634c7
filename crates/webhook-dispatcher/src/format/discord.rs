//! Discord's webhooks: one embed.
//!
//! <https://docs.discord.com/developers/resources/webhook#execute-webhook>. Mentions are off for the whole message
//! (`allowed_mentions`); Markdown of the post is escaped.

use domain::Post;
use serde_json::{Value, json};
use url::{Host, Url};

use super::{heading, limits::discord as limits, origin, text};

pub(super) fn message(post: &Post) -> Value {
    let link = public_link(&post.url);
    let title = escaped(&heading(post), limits::TITLE);
    let author = text::plain(&post.user.name, limits::AUTHOR);
    let footer = footer(post, link.is_none());
    let used = [&title, &author, &footer].map(|field| text::units(field));
    let room = limits::TOTAL - used.iter().sum::<usize>();
    let description = escaped(
        post.text.as_deref().unwrap_or_default(),
        limits::DESCRIPTION.min(room),
    );
    let mut embed = json!({"title": title, "footer": {"text": footer}, "timestamp": post.time});
    if !description.is_empty() {
        embed["description"] = description.into();
    }
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

/// Place, author and time, with the whole address of a post that cannot be linked.
fn footer(post: &Post, with_address: bool) -> String {
    let address = text::link(&post.url).filter(|_| with_address);
    let address = address.map_or_else(String::new, |address| format!(" · {address}"));
    let room = limits::FOOTER - text::units(&address);
    text::plain(&origin(post), room.min(1_000)) + &address
}

/// Returns the address for a link. Discord refuses the whole message if the host of a link is not a public name, and
/// does not say which names it accepts.
fn public_link(address: &str) -> Option<String> {
    let link = text::link(address)?;
    let url = Url::parse(&link).ok()?;
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_public = match url.host()? {
        Host::Domain(name) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            name.len() <= 253 && name.contains('.') && name.split('.').all(is_label)
        }
        Host::Ipv4(_) => true,
        Host::Ipv6(_) => false,
    };
    let has_user = !url.username().is_empty() || url.password().is_some();
    (is_public && !has_user).then_some(link)
}

/// Escapes the characters that Discord's Markdown interprets where they stand
/// (<https://support.discord.com/hc/en-us/articles/210298617>). Readers may see a backslash that is not needed.
pub(super) fn escaped(given: &str, max: usize) -> String {
    text::cut(given, max, text::units, |place, shown| {
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
        if interpreted {
            shown.push('\\');
        }
        shown.push(place.character);
    })
}
