//! Maps page addresses of each platform to the second part of a feed's name.
//!
//! A post maps to the place that contains it, if the address includes it; otherwise to all new posts. A user maps to
//! the user's feed on platforms that have such feeds. Names are copied from the address unchanged; the adapter
//! validates them.

use url::{Url, form_urlencoded};

pub(super) fn hacker_news(url: &Url, segments: &[&str]) -> Option<String> {
    if url.host_str() != Some("news.ycombinator.com") {
        return None;
    }
    let what = match *segments {
        [] | ["news" | "newest" | "front" | "item"] => "newest",
        ["ask"] => "ask",
        ["show" | "shownew"] => "show",
        ["newcomments"] => "comments",
        _ => return None,
    };
    Some(what.to_owned())
}

pub(super) fn lemmy(segments: &[&str]) -> Option<String> {
    match *segments {
        // The address of a post or comment does not contain its community.
        [] | ["post" | "comment", ..] => Some("newest".to_owned()),
        ["c", community, ..] => Some(format!("c/{}", decoded(community))),
        _ => None,
    }
}

pub(super) fn discourse(segments: &[&str]) -> Option<String> {
    match *segments {
        [] | ["latest" | "new" | "top" | "categories"] | ["t", ..] => Some("latest".to_owned()),
        ["posts"] => Some("posts".to_owned()),
        ["c", .., slug, id] if is_number(id) => Some(format!("c/{slug}/{id}")),
        _ => None,
    }
}

pub(super) fn reddit(url: &Url, segments: &[&str]) -> Option<String> {
    match *segments {
        ["r", subreddits, ..] if is_under(url, "reddit.com") => {
            Some(format!("r/{}", decoded_path(subreddits)))
        }
        _ => None,
    }
}

/// One stream contains all posts.
pub(super) fn bluesky(url: &Url, segments: &[&str]) -> Option<String> {
    let page = matches!(*segments, [] | ["profile" | "hashtag" | "search", ..]);
    (is_under(url, "bsky.app") && page).then(|| "jetstream".to_owned())
}

/// Statuses and profiles map to the instance, whose public timeline contains them.
pub(super) fn mastodon(segments: &[&str]) -> Option<String> {
    match *segments {
        ["tags", tag, ..] => Some(format!("tag/{}", decoded(tag))),
        [] | ["public" | "explore", ..] => Some("public".to_owned()),
        [profile, ..] if profile.starts_with('@') => Some("public".to_owned()),
        ["users", _, ..] => Some("public".to_owned()),
        _ => None,
    }
}

pub(super) fn x(url: &Url, segments: &[&str]) -> Option<String> {
    const OWN: [&str; 11] = [
        "home",
        "explore",
        "i",
        "intent",
        "login",
        "messages",
        "notifications",
        "privacy",
        "settings",
        "share",
        "tos",
    ];
    if !(is_under(url, "x.com") || is_under(url, "twitter.com")) {
        return None;
    }
    let word = |name: &str| {
        (1..=15).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    match *segments {
        ["search"] => {
            let query = url.query_pairs().find(|(key, _)| key == "q")?.1;
            Some(format!("search/{}", query.trim()))
        }
        ["hashtag", tag] => Some(format!("search/#{}", decoded(tag))),
        // The posts of that user.
        [name] | [name, "status", ..] if word(name) && !OWN.contains(&name) => {
            Some(format!("search/from:{name}"))
        }
        _ => None,
    }
}

/// An organization is identified by its number; company names are not looked up.
pub(super) fn linkedin(url: &Url, segments: &[&str]) -> Option<String> {
    match *segments {
        ["company" | "showcase" | "school", id, ..]
            if is_under(url, "linkedin.com") && is_number(id) =>
        {
            Some(format!("organization/{id}"))
        }
        _ => None,
    }
}

pub(super) fn facebook(url: &Url, segments: &[&str]) -> Option<String> {
    const OWN: [&str; 13] = [
        "events",
        "groups",
        "hashtag",
        "help",
        "login",
        "login.php",
        "marketplace",
        "permalink.php",
        "photo",
        "policies",
        "share",
        "sharer",
        "watch",
    ];
    if !is_under(url, "facebook.com") {
        return None;
    }
    match *segments {
        ["profile.php"] => {
            let id = url.query_pairs().find(|(key, _)| key == "id")?.1;
            is_number(&id).then(|| format!("page/{id}"))
        }
        ["people" | "pages", _, id, ..] if is_number(id) => Some(format!("page/{id}")),
        [
            "people" | "pages" | "p" | "search" | "photo.php" | "story.php",
            ..,
        ] => None,
        [page, ..] if !OWN.contains(&page) => Some(format!("page/{page}")),
        _ => None,
    }
}

pub(super) fn is_under(url: &Url, domain: &str) -> bool {
    let under = |host: &str| {
        host.strip_suffix(domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    url.host_str().is_some_and(under)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Returns a segment with percent-encoding decoded.
fn decoded(segment: &str) -> String {
    decoded_path(&segment.replace('+', "%2B"))
}

/// Works like [`decoded`], but a plus stays a plus and does not become a space.
fn decoded_path(segment: &str) -> String {
    let pair = format!("x={}", segment.replace('+', "%2B").replace('&', "%26"));
    let value = form_urlencoded::parse(pair.as_bytes()).next();
    value
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use url::Url;

    use crate::feeds::{Kind, Platform, platform_page};

    fn of(kind: Kind, base_url: &str, url: &str) -> Option<String> {
        let platform = Platform {
            name: "p".to_owned(),
            kind,
            source: "ANY".to_owned(),
            base_url: Url::parse(base_url).ok(),
        };
        let feed = platform_page(&Url::parse(url).unwrap(), "ANY", &[platform]);
        feed.map(|feed| feed.what().to_owned())
    }

    #[test]
    fn pages_of_every_platform_are_told_by_their_address() {
        use Kind::{
            Bluesky, Discourse, Facebook, HackerNews, Lemmy, LinkedIn, Mastodon, Reddit, X,
        };
        let hn = "https://hn.algolia.com/api/v1";
        let forum = "https://forum.example";
        let social = "https://social.example";
        for (kind, base, url, what) in [
            (
                HackerNews,
                hn,
                "https://news.ycombinator.com/item?id=8863",
                Some("newest"),
            ),
            (
                HackerNews,
                hn,
                "https://news.ycombinator.com/newcomments",
                Some("comments"),
            ),
            (HackerNews, hn, "https://ycombinator.com/item?id=8863", None),
            (Lemmy, forum, "https://forum.example/post/7", Some("newest")),
            (
                Lemmy,
                forum,
                "https://forum.example/c/rust%40lemmy.ml?page=2",
                Some("c/rust@lemmy.ml"),
            ),
            (Lemmy, forum, "https://forum.example/c/a%2Fb", None),
            (Lemmy, forum, "https://forum.example/modlog", None),
            (
                Discourse,
                forum,
                "https://forum.example/t/which-kettle/123/4",
                Some("latest"),
            ),
            (
                Discourse,
                forum,
                "https://forum.example/c/support/6",
                Some("c/support/6"),
            ),
            (
                Discourse,
                forum,
                "https://forum.example/c/a/b/12",
                Some("c/b/12"),
            ),
            (Discourse, forum, "https://forum.example/u/ana", None),
            (Discourse, forum, "https://other.example/t/x/1", None),
            (
                Reddit,
                "https://oauth.reddit.com",
                "https://old.reddit.com/r/rust/comments/1a/b/",
                Some("r/rust"),
            ),
            (
                Reddit,
                "https://oauth.reddit.com",
                "https://www.reddit.com/user/ana",
                None,
            ),
            (
                Bluesky,
                "wss://jetstream.example",
                "https://bsky.app/profile/ana.example",
                Some("jetstream"),
            ),
            (
                Bluesky,
                "wss://jetstream.example",
                "https://bsky.app/profile/did:plc:a/post/3k",
                Some("jetstream"),
            ),
            (
                Bluesky,
                "wss://jetstream.example",
                "https://bsky.app.example/profile/a",
                None,
            ),
            (
                Mastodon,
                social,
                "https://social.example/tags/Kaffee%C3%A9",
                Some("tag/Kaffeeé"),
            ),
            (
                Mastodon,
                social,
                "https://social.example/@ana/115",
                Some("public"),
            ),
            (
                Mastodon,
                social,
                "https://social.example/@ana@other.example",
                Some("public"),
            ),
            (Mastodon, social, "https://social.example/about", None),
            (Mastodon, social, "https://other.example/@ana", None),
            (
                X,
                "https://api.x.com",
                "https://x.com/ana",
                Some("search/from:ana"),
            ),
            (
                X,
                "https://api.x.com",
                "https://twitter.com/ana/status/1",
                Some("search/from:ana"),
            ),
            (
                X,
                "https://api.x.com",
                "https://x.com/search?q=%22acme%20kettle%22&f=live",
                Some("search/\"acme kettle\""),
            ),
            (
                X,
                "https://api.x.com",
                "https://x.com/hashtag/kettle",
                Some("search/#kettle"),
            ),
            (X, "https://api.x.com", "https://x.com/home", None),
            (X, "https://api.x.com", "https://x.com/search?q=%20", None),
            (X, "https://api.x.com", "https://netflix.com/ana", None),
            (
                LinkedIn,
                "https://api.linkedin.com",
                "https://www.linkedin.com/company/2414183/posts/",
                Some("organization/2414183"),
            ),
            (
                LinkedIn,
                "https://api.linkedin.com",
                "https://www.linkedin.com/company/acme/",
                None,
            ),
            (
                LinkedIn,
                "https://api.linkedin.com",
                "https://www.linkedin.com/in/ana/",
                None,
            ),
            (
                Facebook,
                "https://graph.facebook.com",
                "https://www.facebook.com/acme.kettles/posts/1",
                Some("page/acme.kettles"),
            ),
            (
                Facebook,
                "https://graph.facebook.com",
                "https://www.facebook.com/profile.php?id=61550",
                Some("page/61550"),
            ),
            (
                Facebook,
                "https://graph.facebook.com",
                "https://www.facebook.com/people/Acme/61550/",
                Some("page/61550"),
            ),
            (
                Facebook,
                "https://graph.facebook.com",
                "https://www.facebook.com/groups/1",
                None,
            ),
            (
                Facebook,
                "https://graph.facebook.com",
                "https://www.facebook.com/",
                None,
            ),
        ] {
            assert_eq!(of(kind, base, url).as_deref(), what, "{url}");
        }
    }
}
