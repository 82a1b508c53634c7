//! Pages from customers, and the markup of posts.

use std::sync::LazyLock;

use compiling::extract;
use url::Url;

static URL: LazyLock<Url> = LazyLock::new(|| Url::parse("https://example.com/a/").expect("a URL"));
const MEDIA_TYPES: [Option<&str>; 6] = [
    None,
    Some("text/html; charset=utf-8"),
    Some("text/html; charset=shift_jis"),
    Some("text/plain"),
    Some("application/rss+xml"),
    Some("application/json"),
];

/// The first byte selects the media type.
pub(crate) fn page(data: &[u8]) {
    let Some((&which, body)) = data.split_first() else {
        return;
    };
    let media_type = MEDIA_TYPES[usize::from(which) % MEDIA_TYPES.len()];
    let Ok(page) = extract::extract(&URL, media_type, body) else {
        return;
    };
    for link in &page.links {
        let scheme = Url::parse(&link.href).map(|url| url.scheme().to_owned());
        assert!(
            matches!(scheme.as_deref(), Ok("http" | "https")),
            "{link:?}"
        );
    }
    for block in &page.blocks {
        let heading = block.heading.unwrap_or_default();
        assert!(
            block.heading.is_none() || heading < page.headings.len(),
            "{block:?}"
        );
    }
    let texts = page
        .blocks
        .iter()
        .map(|block| block.text.len())
        .sum::<usize>();
    assert!(texts <= 300 << 10, "{texts} bytes of text");
}

/// Converts markup of posts to plain text.
pub(crate) fn text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for plain in [
        platforms::text::from_html(&text),
        platforms::text::from_markdown(&text),
        platforms::text::line(&text),
        platforms::text::block(&text),
    ] {
        let odd = |c: char| c.is_control() && c != '\n' && c != '\t';
        assert!(!plain.chars().any(odd), "{plain:?}");
    }
    let title = platforms::text::title_of(&text);
    assert!(title.chars().count() <= 121, "{title:?}");
}
