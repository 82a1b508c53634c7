//! Decodes bytes to text: detects the format and the character encoding of a body.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Format of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Html,
    /// XML or JSON that may be a feed.
    Feed,
    Plain,
    Binary,
}

/// Returns the media type without parameters, in lower case: `text/html` for `Text/HTML; charset=utf-8`.
pub(super) fn media_type(content_type: Option<&str>) -> String {
    content_type
        .and_then(|value| value.split(';').next())
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}

/// Returns whether a body with this media type may be a page.
pub(super) fn is_text(media_type: &str) -> bool {
    matches!(
        media_type,
        "" | "application/octet-stream" | "application/json" | "application/feed+json"
    ) || media_type.starts_with("text/")
        || media_type.ends_with("xml")
}

/// Detects the format from the media type, or from the content if the media type says nothing.
///
/// `text` is the decoded body.
pub(super) fn form(media_type: &str, text: &str) -> Form {
    if looks_binary(text) {
        return Form::Binary;
    }
    let start = text.trim_start().get(..64).unwrap_or(text.trim_start());
    let start = start.to_ascii_lowercase();
    let xml_feed = ["<?xml", "<rss", "<feed", "<rdf:rdf"]
        .iter()
        .any(|prefix| start.starts_with(prefix));
    match media_type {
        "text/html" if xml_feed && !text.contains("<html") => Form::Feed,
        "text/html" | "application/xhtml+xml" => Form::Html,
        "application/json" | "application/feed+json" => Form::Feed,
        xml if xml.ends_with("/xml") || xml.ends_with("+xml") => Form::Feed,
        "" | "application/octet-stream" | "text/plain" if xml_feed => Form::Feed,
        "" | "application/octet-stream" if start.starts_with('<') => Form::Html,
        "" | "application/octet-stream" => Form::Plain,
        other if other.starts_with("text/") => Form::Plain,
        _ => Form::Binary,
    }
}

/// Decodes by byte order mark, then the header's charset, then the page's own declaration. Without these it uses UTF-8
/// if that is valid, else the default of browsers. A header that wrongly says UTF-8 is often a server's default and not
/// a statement about the page.
pub(super) fn decode(content_type: Option<&str>, body: &[u8]) -> String {
    let declared = content_type
        .and_then(charset_parameter)
        .filter(|encoding| *encoding != UTF_8 || !is_misnamed(body))
        .or_else(|| declared_in_head(body));
    let encoding = match (declared, std::str::from_utf8(body)) {
        (Some(encoding), _) => encoding,
        (None, Ok(_)) => UTF_8,
        // A truncated character at the end is still UTF-8, if there were characters before.
        (None, Err(error))
            if error.error_len().is_none() && !body[..error.valid_up_to()].is_ascii() =>
        {
            UTF_8
        }
        (None, Err(_)) => WINDOWS_1252,
    };
    encoding.decode(body).0.into_owned()
}

/// Returns whether more of the non-ASCII text is invalid UTF-8 than valid.
fn is_misnamed(body: &[u8]) -> bool {
    let (mut right, mut wrong) = (0_usize, 0_usize);
    for chunk in body.utf8_chunks() {
        right += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        wrong += usize::from(!chunk.invalid().is_empty());
    }
    wrong > right
}

/// Returns whether most of a text was lost in decoding.
pub(super) fn is_lost(text: &str) -> bool {
    let lost = text.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER);
    lost.count() * 2 > text.chars().count()
}

fn charset_parameter(content_type: &str) -> Option<&'static Encoding> {
    let lower = content_type.to_ascii_lowercase();
    let (_, rest) = lower.split_once("charset=")?;
    let label = rest.split([';', ',', ' ']).next()?;
    Encoding::for_label(label.trim_matches(['"', '\'']).as_bytes())
}

/// Returns the encoding in `<meta charset=…>` or `<?xml encoding=…?>`. The standards require it in the first kilobyte.
fn declared_in_head(body: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&body[..body.len().min(1024)]).to_ascii_lowercase();
    let at = head
        .find("charset=")
        .map(|at| at + "charset=".len())
        .or_else(|| head.find("encoding=").map(|at| at + "encoding=".len()))?;
    let label = head[at..]
        .trim_start_matches(['"', '\'', ' '])
        .split(['"', '\'', ' ', '>', '/', ';', '?'])
        .next()?;
    let encoding = Encoding::for_label(label.as_bytes())?;
    // The declaration was read as ASCII, so the page cannot be UTF-16.
    Some(encoding.output_encoding()).filter(|e| e.is_ascii_compatible())
}

/// Returns whether the text has too many control characters. A few are mistakes that browsers ignore, even NULs.
fn looks_binary(text: &str) -> bool {
    let (mut controls, mut all) = (0_usize, 0_usize);
    for c in text.chars().take(4_096) {
        all += 1;
        let is_text = c >= ' ' || matches!(c, '\t' | '\n' | '\r' | '\x0c' | '\x1b');
        controls += usize::from(!is_text);
    }
    controls * 20 > all
}

#[cfg(test)]
mod tests {
    use super::{Form, decode, form, media_type};

    #[test]
    fn encodings_come_from_header_then_page_then_guess() {
        let latin = b"caf\xe9";
        assert_eq!(decode(Some("text/html; charset=ISO-8859-1"), latin), "café");
        assert_eq!(decode(None, latin), "café");
        assert_eq!(decode(None, "café".as_bytes()), "café");
        let page = b"<meta charset=\"windows-1251\">\xcf\xf0\xe8";
        assert!(decode(Some("text/html"), page).ends_with("При"));
        assert_eq!(decode(Some("text/html; charset=nonsense"), b"ok"), "ok");
        let utf8 = Some("text/html; charset=utf-8");
        assert_eq!(decode(utf8, latin), "café");
        assert!(decode(utf8, page).ends_with("При"));
        assert_eq!(
            decode(utf8, b"caf\xc3\xa9 \xc3\xa9t\xc3\xa9 \xe9"),
            "café été \u{fffd}"
        );
    }

    #[test]
    fn forms_follow_the_media_type_and_the_content() {
        for (content_type, body, expected) in [
            (Some("text/html"), "<p>x", Form::Html),
            (Some("Text/HTML; charset=utf-8"), "", Form::Html),
            (None, "<!doctype html><p>x", Form::Html),
            (None, "# Title\n\ntext", Form::Plain),
            (Some("text/markdown"), "# Title", Form::Plain),
            (Some("application/rss+xml"), "<rss>", Form::Feed),
            (
                Some("text/html"),
                "<?xml version=\"1.0\"?><rss>",
                Form::Feed,
            ),
            (Some("application/pdf"), "%PDF-1.7", Form::Binary),
            (Some("text/html"), "<p>one slip\0 in a page", Form::Html),
            (Some("text/html"), "\0\u{1}\u{2}IHDR", Form::Binary),
            (None, "PK\u{3}\u{4}\0\0", Form::Binary),
            (Some("image/png"), "\u{1}\u{2}", Form::Binary),
        ] {
            let media_type = media_type(content_type);
            assert_eq!(form(&media_type, body), expected, "{body}");
        }
    }
}
