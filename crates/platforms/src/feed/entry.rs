//! Converts a feed's entry to a post.

use domain::{
    Post, PostType, Subforum, Timestamp, User,
    web_url::{self, has_long_host},
};
use sha2::{Digest, Sha256};
use url::Url;

use super::document::{Document, Entry, Link, Markup, Person, Rel};
use crate::{AddressKey, text};

/// The longest id that is used unchanged.
const MAX_ID_BYTES: usize = 500;

/// Source of a feed.
pub(super) struct Origin<'a> {
    pub(super) platform: &'a str,
    /// Separates this feed's ids from those of other feeds on the same platform, if there are any: the feed's
    /// address, and the key to hash it with.
    pub(super) scope: Option<(&'a AddressKey, &'a str)>,
    pub(super) post_type: PostType,
    /// The address after redirects.
    pub(super) url: &'a Url,
    /// The configured address.
    pub(super) feed_url: &'a Url,
}

/// A feed's data that its entries use.
pub(super) struct About<'a> {
    origin: &'a Origin<'a>,
    /// The hash of the feed's address, for ids.
    scope: Option<String>,
    /// The feed as an author.
    itself: User,
    author: Option<User>,
}

impl<'a> About<'a> {
    pub(super) fn new(origin: &'a Origin<'a>, feed: &Document) -> Self {
        let title = feed.title.as_ref().map(title_line);
        let host = origin.url.host_str().unwrap_or(origin.platform);
        let site = web_link(&feed.links, Rel::Alternate);
        let scope = origin.scope.map(|(key, address)| key.hash(address));
        // Receivers must not see a token in the address.
        let address = web_url::masked(origin.feed_url);
        let id = match &scope {
            Some(scope) if address != origin.feed_url.as_str() => {
                format!("{}:{scope}", origin.platform)
            }
            _ => address.clone(),
        };
        let site = site.filter(|site| !reveals(site, origin.feed_url));
        let itself = User {
            id,
            name: title
                .filter(|title| !title.is_empty())
                .unwrap_or_else(|| host.to_owned()),
            url: site.unwrap_or(address),
        };
        let author = feed.authors.iter().find_map(|person| user(person, &itself));
        Self {
            origin,
            scope,
            itself,
            author,
        }
    }

    /// `None` if the entry has no text.
    pub(super) fn post(&self, entry: &Entry, native: &str, time: Timestamp) -> Option<Post> {
        let body = body(entry);
        let title = entry.title.as_ref().map(title_line);
        let title = title.filter(|title| !title.is_empty());
        let post_type = self.origin.post_type;
        let (title, body) = match post_type {
            PostType::ForumLink => {
                let from_body = || Some(text::title_of(body.as_deref()?));
                (Some(title.or_else(from_body)?), body)
            }
            PostType::MicroblogTweet | PostType::ForumComment => (None, Some(body.or(title)?)),
            PostType::NetworkPost => {
                let body = body.or_else(|| title.clone())?;
                (title, Some(body))
            }
        };
        let named = || {
            let found = entry.authors.iter().find_map(|one| user(one, &self.itself));
            found.or_else(|| self.author.clone())
        };
        Some(Post {
            post_type,
            time,
            id: self.id(native),
            url: self.url(entry),
            title,
            text: body,
            subforum: (post_type == PostType::ForumLink).then(|| Subforum {
                id: self.itself.id.clone(),
                name: self.itself.name.clone(),
                url: self.itself.url.clone(),
            }),
            user: named().unwrap_or_else(|| self.itself.clone()),
        })
    }

    /// Uses the id unchanged if the feed owns it. Any other id is scoped to its feed, because a feed could list
    /// the ids of another site's posts.
    fn id(&self, native: &str) -> String {
        let platform = self.origin.platform;
        let hashed = match self.origin.scope {
            Some((key, _)) if reveals(native, self.origin.feed_url) => Some(key.hash(native)),
            _ => None,
        };
        let is_own = hashed.is_none() && is_own(native, self.origin.url);
        let native = hashed.as_deref().unwrap_or(native);
        let id = match (is_own, &self.scope) {
            (true, _) => native.to_owned(),
            (false, Some(scope)) => format!("{platform}:{scope}#{native}"),
            (false, None) => format!("{platform}:{native}"),
        };
        let odd = id.len() > MAX_ID_BYTES || id.chars().any(char::is_control);
        if odd {
            let hash = Sha256::digest(id.as_bytes());
            return format!("{platform}:{}", hex::encode(&hash[..16]));
        }
        id
    }

    fn url(&self, entry: &Entry) -> String {
        let rels = [Rel::Alternate, Rel::Id, Rel::Itself];
        let links = rels.iter().find_map(|rel| web_link(&entry.links, *rel));
        links
            .filter(|url| !url.starts_with(self.origin.feed_url.as_str()))
            .unwrap_or_else(|| self.itself.url.clone())
    }
}

/// The entry's text: its content, else its summary, else another one.
fn body(entry: &Entry) -> Option<String> {
    let texts = [&entry.content, &entry.summary].into_iter().flatten();
    texts.chain(&entry.others).find_map(|text| {
        let text = plain_text(text);
        text::some_block(without_frame(&text))
    })
}

fn plain_text(text: &Markup) -> String {
    match text {
        Markup::Plain(text) => text::block(text.trim()),
        Markup::Html(html) | Markup::Either(html) => text::from_html(html.trim()),
    }
}

/// Returns true if the text contains the query of the feed's address, or a part of it that may be a token. Some
/// feeds build ids and links from their address.
fn reveals(text: &str, feed_url: &Url) -> bool {
    /// Shorter values are words such as `rss`, which also occur in other places.
    const MIN_TOKEN_BYTES: usize = 8;
    let Some(query) = feed_url.query().filter(|query| !query.is_empty()) else {
        return false;
    };
    let values = query.split('&').map(|pair| match pair.split_once('=') {
        Some((_, value)) => value,
        None => pair,
    });
    let mut tokens = values.filter(|value| value.len() >= MIN_TOKEN_BYTES);
    text.contains(&format!("?{query}")) || tokens.any(|token| text.contains(token))
}

/// Returns true if a feed read at `feed` may use the id: a web address on its host, or a tag of that authority.
/// A URN, even of a UUID, has no owner that the feed's address could prove.
fn is_own(id: &str, feed: &Url) -> bool {
    let (Ok(uri), Some(host)) = (Url::parse(id), feed.host_str()) else {
        return false;
    };
    match uri.scheme() {
        "http" | "https" => uri.host_str() == Some(host) && uri.port() == feed.port(),
        "tag" => {
            let authority = uri.path().split_once(',').map(|(authority, _)| authority);
            feed.port().is_none() && authority.is_some_and(|one| one.eq_ignore_ascii_case(host))
        }
        _ => false,
    }
}

/// A title without its markup, but with text that only looks like markup: `Vec<T>`.
fn title_line(title: &Markup) -> String {
    text::line(&match title {
        Markup::Plain(title) => title.clone(),
        Markup::Html(title) => text::from_html(title),
        Markup::Either(title) if has_element(title) => text::from_html(title),
        Markup::Either(title) => text::decode_entities(title),
    })
}

/// Returns true if the text has an element with a begin and an end. Other tags are what a title is about.
fn has_element(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let Some((before, after)) = text.split_once("</") else {
        return false;
    };
    let name = after.split(|c: char| !c.is_ascii_alphanumeric()).next();
    name.is_some_and(|name| !name.is_empty() && before.contains(&format!("<{name}")))
}

/// Lemmy puts "submitted by" above the text, Reddit below it.
fn without_frame(body: &str) -> &str {
    const BY: &str = "submitted by ";
    if let Some(tail) = body.rfind(BY)
        && body.ends_with("[comments]")
    {
        return &body[..tail];
    }
    match body.split_once('\n') {
        Some((first, rest)) if first.starts_with(BY) => {
            let links = |line: &&str| line.contains(" points | ") || line.contains(" comments");
            match rest.split_once('\n') {
                Some((second, rest)) if links(&second) => rest,
                None if links(&rest) => "",
                _ => rest,
            }
        }
        _ => body,
    }
}

/// The author as a user, if the feed names one.
fn user(person: &Person, feed: &User) -> Option<User> {
    let name = text::line(&person.name);
    let uri = person.uri.as_deref();
    let uri = uri.and_then(|uri| web_address(uri, Url::parse(&feed.url).ok().as_ref()));
    // Some feeds name their authors by the address of their profile.
    if let Some(profile) = web_address(&name, None) {
        let path = profile.trim_end_matches('/');
        let name = path.rsplit('/').next().unwrap_or(path).to_owned();
        return Some(User {
            id: profile.clone(),
            name,
            url: profile,
        });
    }
    if name.is_empty() {
        return None;
    }
    Some(User {
        id: uri.clone().unwrap_or_else(|| name.clone()),
        url: uri.unwrap_or_else(|| feed.url.clone()),
        name,
    })
}

fn web_link(links: &[Link], rel: Rel) -> Option<String> {
    let mut fitting = links.iter().filter(|link| link.rel == rel);
    fitting.find_map(|link| web_address(link.url.as_str(), None))
}

fn web_address(text: &str, base: Option<&Url>) -> Option<String> {
    let text = text.trim();
    if has_long_host(text) {
        return None;
    }
    let url = match base {
        Some(base) if !text.is_empty() => base.join(text).ok()?,
        _ => Url::parse(text).ok()?,
    };
    let sane = matches!(url.scheme(), "http" | "https") && url.as_str().len() <= 2_048;
    sane.then(|| url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_speaks_for_its_own_host_only() {
        let feed = Url::parse("https://blog.example/feed.xml").unwrap();
        for own in [
            "https://blog.example/1",
            "http://Blog.Example/1",
            "tag:blog.example,2026:1",
        ] {
            assert!(is_own(own, &feed), "{own}");
        }
        for other in [
            "https://lemmy.example/post/1",
            "https://blog.example@lemmy.example/post/1",
            "https://blog.example.evil.example/1",
            "https://blog.example:8443/1",
            "tag:lemmy.example,2026:1",
            "tag:ana@blog.example,2026:1",
            "tag:blog.example",
            "urn:uuid:60a76c80-d399-11d9-b93c-0003939e0af6",
            "at://did:plc:abc/app.bsky.feed.post/1",
            "hackernews:8863",
            "1",
            "",
        ] {
            assert!(!is_own(other, &feed), "{other}");
        }
    }
}
