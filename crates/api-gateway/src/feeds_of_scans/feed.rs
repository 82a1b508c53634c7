//! Content of a feed, independent of its format.

use domain::{ManagerName, Scan, Timestamp};

/// Maximum length of a post's text; the full text is at its source.
const MAX_TEXT_CHARS: usize = 10_000;

/// Content of both formats.
pub(super) struct Feed {
    pub(super) manager: ManagerName,
    pub(super) title: String,
    pub(super) updated: Timestamp,
    pub(super) scans: Vec<Scan>,
}

/// Title that a reader shows for a post without one.
pub(super) fn title(scan: &Scan) -> String {
    const CHARS: usize = 120;
    let post = &scan.post;
    let words = post
        .title
        .as_deref()
        .filter(|title| !title.trim().is_empty());
    let words = words.or(post.text.as_deref()).unwrap_or_default();
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.is_empty() => format!("Post by {}", post.user.name),
        None => line,
    }
}

pub(super) fn text(scan: &Scan) -> String {
    let text = scan.post.text.as_deref().unwrap_or_default();
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns `url` if it is a web address.
pub(super) fn link(url: &str) -> Option<&str> {
    let is_web = |start: &str| {
        let scheme = url.get(..start.len());
        scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(start))
    };
    (is_web("https://") || is_web("http://")).then_some(url)
}
