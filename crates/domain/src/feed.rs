//! Names of feeds: `<platform>:<what>`, one pollable part of one configured platform.

use std::{borrow::Cow, fmt, str::FromStr};

use url::Url;

use crate::{Issue, source::SourceType, web_url::masked};

/// The longest feed name, in bytes: a platform's name and a URL of 2,048.
pub const MAX_BYTES: usize = 2_112;

/// `hackernews:newest`, `programming.dev:c/rust`, `blogs:https://example.com/feed.xml`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeedName {
    text: String,
    colon: usize,
}

impl FeedName {
    /// The name of a configured platform.
    pub fn platform(&self) -> &str {
        &self.text[..self.colon]
    }

    /// The second part of the name; the platform's adapter knows its form.
    pub fn what(&self) -> &str {
        &self.text[self.colon + 1..]
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The web address that names the feed, if a customer chose it. Anyone can name such a feed and publish
    /// anything there, so its posts are kept separate from those of every other feed.
    pub fn address(&self) -> Option<&str> {
        let (scheme, _) = self.what().split_once(':')?;
        ["http", "https"]
            .iter()
            .any(|web| scheme.eq_ignore_ascii_case(web))
            .then(|| self.what())
    }

    /// The name for logs, traces and errors: an address in it is masked.
    pub fn masked(&self) -> Cow<'_, str> {
        let Some(address) = self.address() else {
            return Cow::Borrowed(&self.text);
        };
        let address = Url::parse(address).map_or_else(|_| "***".to_owned(), |url| masked(&url));
        Cow::Owned(format!("{}:{address}", self.platform()))
    }

    /// Returns true if `name` is valid as the first part of a feed's name.
    pub fn is_platform_name(name: &str) -> bool {
        (1..=64).contains(&name.len())
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b))
    }
}

/// The text is not a feed's name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a feed name of the form `<platform>:<what>`")]
pub struct ParseFeedNameError;

impl FromStr for FeedName {
    type Err = ParseFeedNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let colon = text.find(':').ok_or(ParseFeedNameError)?;
        let what = &text[colon + 1..];
        let sane = Self::is_platform_name(&text[..colon])
            && !what.is_empty()
            && text.len() <= MAX_BYTES
            && what.trim() == what
            && !what.chars().any(char::is_control);
        sane.then(|| Self {
            text: text.to_owned(),
            colon,
        })
        .ok_or(ParseFeedNameError)
    }
}

impl fmt::Display for FeedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

crate::text::serde_as_text!(FeedName);

/// The feeds that this deployment can watch, decided without a request to a platform.
pub trait FeedRules: Sync {
    /// Checks that a Manager of `source` (if known) may watch `feed`.
    ///
    /// # Errors
    /// The reason: `not_found` for a platform that is not configured, `conflict` for one of another source,
    /// `invalid_format` for a feed whose form the platform does not have.
    fn check(&self, feed: &FeedName, source: Option<SourceType>) -> Result<(), Issue>;
}

/// How far back a feed can be read on its platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Only new posts: missed ones cannot be read later.
    Nothing,
    /// A period of this length.
    Time(std::time::Duration),
    /// About this many posts.
    Posts(u32),
}

/// Hacker News with only its newest posts.
#[cfg(test)]
pub(crate) struct OneForum;

#[cfg(test)]
impl FeedRules for OneForum {
    fn check(&self, feed: &FeedName, source: Option<SourceType>) -> Result<(), Issue> {
        match (feed.platform(), feed.what()) {
            ("hackernews", "newest") => match source {
                None | Some(SourceType::Forum) => Ok(()),
                Some(_) => Err(Issue::Conflict),
            },
            ("hackernews", _) => Err(Issue::InvalidFormat),
            _ => Err(Issue::NotFound),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FeedName;

    #[test]
    fn the_first_colon_ends_the_platform() {
        let feed: FeedName = "blogs:https://example.com/feed.xml".parse().unwrap();
        assert_eq!(
            (feed.platform(), feed.what()),
            ("blogs", "https://example.com/feed.xml")
        );
    }

    #[test]
    fn address_is_known_by_its_scheme() {
        for (name, is_address) in [
            ("blogs:https://example.com/feed.xml", true),
            ("blogs:HTTP://example.com/feed.xml", true),
            // `Url` repairs this one.
            ("blogs:https:example.com", true),
            ("blog:newest", false),
            ("lemmy:c/rust", false),
            ("x:search/https://example.com", false),
            ("x:http", false),
        ] {
            let feed: FeedName = name.parse().unwrap();
            assert_eq!(feed.address(), is_address.then(|| feed.what()), "{name}");
        }
    }

    #[test]
    fn masked_name_shows_no_token() {
        for (name, shown) in [
            (
                "blogs:https://a.example/f?token=canary",
                "blogs:https://a.example/f?***",
            ),
            ("blogs:http:canary", "blogs:http://canary/"),
            ("blogs:https://[canary", "blogs:***"),
            ("x:search/what?", "x:search/what?"),
        ] {
            assert_eq!(name.parse::<FeedName>().unwrap().masked(), shown);
        }
    }

    #[test]
    fn malformed_names_are_refused() {
        for wrong in [
            "",
            "hackernews",
            "hackernews:",
            ":newest",
            "Hacker News:newest",
            "hn: a",
            "hn:a\nb",
        ] {
            assert!(wrong.parse::<FeedName>().is_err(), "{wrong}");
        }
    }
}
