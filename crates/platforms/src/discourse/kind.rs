//! Facts about a Discourse site that need no request.

use std::sync::Arc;

use domain::Reach;
use url::Url;

use super::{Discourse, Key, accepts};
use crate::{
    Adapter, SettingsError, Source,
    kind::{PAGES, Parts, PlatformKind, is_number, own_segments, page_below},
};

pub(crate) struct Kind;

impl PlatformKind for Kind {
    fn name(&self) -> &'static str {
        "discourse"
    }

    fn source(&self) -> Option<Source> {
        Some(Source::Forum)
    }

    fn accepts(&self, _: Option<&Url>, what: &str) -> bool {
        accepts(what)
    }

    fn newest(&self, _: Option<&Url>) -> Option<&'static str> {
        Some("latest")
    }

    fn newest_has(&self, _: &str) -> bool {
        true
    }

    fn reach(&self) -> Reach {
        Reach::Posts(PAGES * 30)
    }

    fn page_of(&self, base_url: Option<&Url>, what: &str) -> Option<Url> {
        page_below(base_url, if what == "posts" { "latest" } else { what })
    }

    fn feed_of(&self, base_url: Option<&Url>, page: &Url) -> Option<String> {
        match *own_segments(base_url, page)?.as_slice() {
            [] | ["latest" | "new" | "top" | "categories"] | ["t", ..] => Some("latest".to_owned()),
            ["posts"] => Some("posts".to_owned()),
            ["c", .., slug, id] if is_number(id) => Some(format!("c/{slug}/{id}")),
            _ => None,
        }
    }

    /// There is no such list for a single category.
    fn comments_of(&self, what: &str) -> Option<String> {
        (what == "latest").then(|| "posts".to_owned())
    }

    fn holds_comments(&self, what: &str) -> bool {
        what == "posts"
    }

    fn build(&self, parts: &Parts<'_>) -> Result<Arc<dyn Adapter>, SettingsError> {
        let access = &parts.settings.access;
        let key = match (&access.token, &access.client_id) {
            (Some(key), Some(username)) => Some(Key {
                key: key.clone(),
                username: username.clone(),
            }),
            (None, None) => None,
            _ => return Err(parts.wrong("token and client_id go together")),
        };
        let adapter = Discourse::new(parts.name(), parts.base_url()?, key, parts.direct()?);
        Ok(Arc::new(adapter))
    }
}
