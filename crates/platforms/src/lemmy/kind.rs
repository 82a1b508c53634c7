//! Facts about a Lemmy instance that need no request.

use std::sync::Arc;

use domain::Reach;
use url::Url;

use super::{Lemmy, accepts};
use crate::{
    Adapter, SettingsError, Source,
    kind::{PAGES, Parts, PlatformKind, decoded, own_segments, page_below},
};

pub(crate) struct Kind;

impl PlatformKind for Kind {
    fn name(&self) -> &'static str {
        "lemmy"
    }

    fn source(&self) -> Option<Source> {
        Some(Source::Forum)
    }

    fn accepts(&self, _: Option<&Url>, what: &str) -> bool {
        accepts(what)
    }

    fn newest(&self, _: Option<&Url>) -> Option<&'static str> {
        Some("newest")
    }

    /// An instance's own feed has only its own communities.
    fn newest_has(&self, what: &str) -> bool {
        !what.contains('@')
    }

    fn reach(&self) -> Reach {
        Reach::Posts(PAGES * 50)
    }

    fn page_of(&self, base_url: Option<&Url>, what: &str) -> Option<Url> {
        let path = match what {
            "newest" | "comments" => "",
            list if self.holds_comments(list) => list.strip_suffix("/comments")?,
            community => community,
        };
        page_below(base_url, path)
    }

    fn feed_of(&self, base_url: Option<&Url>, page: &Url) -> Option<String> {
        match *own_segments(base_url, page)?.as_slice() {
            // The address of a post or comment does not contain its community.
            [] | ["post" | "comment", ..] => Some("newest".to_owned()),
            ["c", community, ..] => Some(format!("c/{}", decoded(community))),
            _ => None,
        }
    }

    fn comments_of(&self, what: &str) -> Option<String> {
        match what {
            "newest" => Some("comments".to_owned()),
            comments if self.holds_comments(comments) => None,
            place => Some(format!("{place}/comments")),
        }
    }

    fn holds_comments(&self, what: &str) -> bool {
        // A community may have this name too.
        match what.split_once('/') {
            Some((_, place)) => place.ends_with("/comments"),
            None => what == "comments",
        }
    }

    fn build(&self, parts: &Parts<'_>) -> Result<Arc<dyn Adapter>, SettingsError> {
        let token = parts.settings.access.token.clone();
        let adapter = Lemmy::new(parts.base_url()?, parts.direct()?).with_token(token);
        Ok(Arc::new(adapter))
    }
}
