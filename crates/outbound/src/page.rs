//! The result of a fetch.

use std::time::Duration;

use bytes::Bytes;
use encoding_rs::{Encoding, UTF_8};
use http::{
    HeaderMap, HeaderName,
    header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, LAST_MODIFIED},
};
use url::Url;

/// HTML must declare its encoding in this many bytes.
const PRESCAN_BYTES: usize = 1_024;

/// A response with any status. The body is decompressed and within the limits.
#[derive(Debug, Clone)]
pub struct Page {
    /// Address after redirects.
    pub url: Url,
    pub status: u16,
    /// The media type, lower case, without parameters.
    pub content_type: Option<String>,
    /// Charset in the response's head, lower case.
    pub charset: Option<String>,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    pub cache_control: Option<String>,
    pub retry_after: Option<Duration>,
    pub body: Bytes,
}

impl Page {
    pub(crate) fn new(
        url: Url,
        status: u16,
        headers: &HeaderMap,
        retry_after: Option<Duration>,
        body: Bytes,
    ) -> Self {
        let full_type = text(headers, &CONTENT_TYPE).map(|value| value.to_ascii_lowercase());
        let charset = full_type.as_deref().and_then(charset_of);
        let media_type = |value: &str| {
            value
                .split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        Self {
            url,
            status,
            content_type: full_type.as_deref().map(media_type),
            charset,
            etag: text(headers, &ETAG),
            last_modified: text(headers, &LAST_MODIFIED),
            cache_control: text(headers, &CACHE_CONTROL),
            retry_after,
            body,
        }
    }

    /// The body as text. The encoding is taken from its byte order mark, else the head's charset, else the
    /// declaration in the first bytes of HTML or XML, else UTF-8. Invalid bytes become U+FFFD.
    pub fn text(&self) -> String {
        let named = self
            .charset
            .as_deref()
            .and_then(|label| Encoding::for_label(label.as_bytes()));
        let encoding = named.or_else(|| declared(&self.body)).unwrap_or(UTF_8);
        encoding.decode(&self.body).0.into_owned()
    }
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

/// The charset in `text/html; charset="utf-8"`, which is lower case already.
fn charset_of(content_type: &str) -> Option<String> {
    content_type
        .split(';')
        .skip(1)
        .filter_map(|parameter| parameter.split_once('='))
        .find(|(name, _)| name.trim() == "charset")
        .map(|(_, value)| value.trim().trim_matches(['"', '\'']).to_owned())
        .filter(|value| !value.is_empty())
}

/// `<meta charset=…>`, `<meta … content="…; charset=…">` or `<?xml encoding="…"?>`.
fn declared(body: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&body[..body.len().min(PRESCAN_BYTES)]).to_ascii_lowercase();
    let (_, after) = head
        .split_once("charset=")
        .or_else(|| head.split_once("encoding="))?;
    let label: String = after
        .trim_start_matches(['"', '\'', ' '])
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || "-_:.".contains(*c))
        .collect();
    let encoding = Encoding::for_label(label.as_bytes())?;
    // If these words are readable, the bytes are not UTF-16, even if declared so (WHATWG HTML).
    let readable = encoding.is_ascii_compatible();
    Some(if readable { encoding } else { UTF_8 })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderMap;

    use super::Page;

    fn page(content_type: &str, body: &'static [u8]) -> Page {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", content_type.parse().unwrap());
        let url = "https://acme.com/".parse().unwrap();
        Page::new(url, 200, &headers, None, Bytes::from_static(body))
    }

    #[test]
    fn content_type_is_parsed() {
        let page = page("Text/HTML; x=y; Charset=\"ISO-8859-1\"", b"");
        assert_eq!(page.content_type.as_deref(), Some("text/html"));
        assert_eq!(page.charset.as_deref(), Some("iso-8859-1"));
    }

    #[test]
    fn text_is_decoded_by_its_known_encoding() {
        for (content_type, body, expected) in [
            ("text/html", "größe".as_bytes(), "größe"),
            ("text/html; charset=iso-8859-1", b"gr\xf6\xdfe", "größe"),
            ("text/html; charset=nonsense", b"a", "a"),
            (
                "text/html",
                b"<meta charset=latin1>\xf6",
                "<meta charset=latin1>ö",
            ),
            (
                "text/html",
                b"<meta charset=utf-16>a",
                "<meta charset=utf-16>a",
            ),
            (
                "text/xml",
                b"<?xml encoding='windows-1252'?>\x80",
                "<?xml encoding='windows-1252'?>€",
            ),
            ("text/plain; charset=latin1", b"\xef\xbb\xbf\xc3\xb6", "ö"),
            ("text/plain", b"a\xffb", "a\u{fffd}b"),
        ] {
            assert_eq!(page(content_type, body).text(), expected, "{content_type}");
        }
    }
}
