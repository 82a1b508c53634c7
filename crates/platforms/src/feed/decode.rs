//! Decodes the bytes of a document to text.
//!
//! The encoding is named by a byte order mark, by the charset of `Content-Type` (RFC 7303, section 3), or by the XML
//! declaration. A name that the bytes contradict is not believed: then the bytes decide. Bytes of no character become
//! U+FFFD, and never make a document unreadable.

use std::{borrow::Cow, io::Read as _};

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, UTF_16BE, UTF_16LE, WINDOWS_1252};
use flate2::read::GzDecoder;

/// How much of a document is searched for its XML declaration.
const PROLOG_BYTES: usize = 1_024;
/// How much of a document decides about its encoding.
const DETECTION_BYTES: usize = 64 * 1024;
/// One broken character for so many sound ones leaves a document in UTF-8.
const SOUND_FOR_BROKEN: usize = 4;
/// Begins a stream of gzip, and no feed.
const GZIP_MAGIC: &[u8] = &[0x1F, 0x8B, 0x08];

/// Decodes `body`; `charset` is the parameter of its media type.
pub(super) fn decode<'a>(body: &'a [u8], charset: Option<&str>) -> Cow<'a, str> {
    let text = match Encoding::for_bom(body) {
        Some((encoding, length)) => encoding.decode_without_bom_handling(&body[length..]).0,
        None => without_mark(body, charset),
    };
    with_windows_marks(text)
}

/// Returns true if `body` is compressed although its server does not say so. A few bytes can become a large document.
#[must_use]
pub fn is_packed(body: &[u8]) -> bool {
    body.starts_with(GZIP_MAGIC)
}

/// Unpacks a document that a server sends compressed without saying so, up to `max_bytes`.
pub(super) fn unpack(body: &[u8], max_bytes: usize) -> Cow<'_, [u8]> {
    if !is_packed(body) {
        return Cow::Borrowed(body);
    }
    let mut unpacked = Vec::new();
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX);
    // What was unpacked before an error is read like a document that was cut off.
    let _ = GzDecoder::new(body).take(limit).read_to_end(&mut unpacked);
    Cow::Owned(unpacked)
}

fn without_mark<'a>(body: &'a [u8], charset: Option<&str>) -> Cow<'a, str> {
    if let Some(encoding) = wide(body) {
        return encoding.decode_without_bom_handling(body).0;
    }
    // Other encodings yield no sound UTF-8 by chance.
    if let Ok(text) = std::str::from_utf8(body)
        && !text.is_ascii()
    {
        return Cow::Borrowed(text);
    }
    let labels = [charset.map(str::as_bytes), declared(body)];
    // `us-ascii` is a default of servers, and no statement about other bytes.
    let is_ascii = |label: &&[u8]| label.eq_ignore_ascii_case(b"us-ascii");
    let named = labels
        .into_iter()
        .flatten()
        .filter(|label| !is_ascii(label));
    let named = named.filter_map(Encoding::for_label);
    // A wide encoding would show in the bytes.
    let mut named =
        named.filter(|encoding| encoding.is_ascii_compatible() || *encoding == ISO_2022_JP);
    let decoded = named
        .find_map(|encoding| encoding.decode_without_bom_handling_and_without_replacement(body));
    decoded.unwrap_or_else(|| {
        if is_mostly_utf8(body) {
            String::from_utf8_lossy(body)
        } else {
            detected(body).decode_without_bom_handling(body).0
        }
    })
}

fn detected(body: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    let beginning = &body[..body.len().min(DETECTION_BYTES)];
    // ASCII before the first other byte says nothing.
    let other = body.iter().position(|byte| !byte.is_ascii()).unwrap_or(0);
    detector.feed(beginning, false);
    if other >= DETECTION_BYTES {
        let end = body.len().min(other + DETECTION_BYTES);
        detector.feed(&body[other..end], false);
    }
    detector.feed(&[], true);
    detector.guess(None, Utf8Detection::Allow)
}

/// UTF-16 without a byte order mark: each second byte of the first markup is zero.
fn wide(body: &[u8]) -> Option<&'static Encoding> {
    match body.get(..4)? {
        [first, 0, second, 0] if *first != 0 && *second != 0 => Some(UTF_16LE),
        [0, first, 0, second] if *first != 0 && *second != 0 => Some(UTF_16BE),
        _ => None,
    }
}

/// The name of the encoding in `<?xml … encoding="…"?>`.
fn declared(body: &[u8]) -> Option<&[u8]> {
    let body = body.trim_ascii_start();
    let prolog = &body[..body.len().min(PROLOG_BYTES)];
    let find = |text: &[u8], word: &[u8]| text.windows(word.len()).position(|part| part == word);
    let start = find(prolog, b"<?xml")?;
    let rest = &prolog[start..];
    let declaration = &rest[..find(rest, b">")?];
    let value = declaration[find(declaration, b"encoding")? + 8..].trim_ascii_start();
    let value = value.strip_prefix(b"=")?.trim_ascii_start();
    let (quote, value) = value.split_first()?;
    let end = value.iter().position(|byte| byte == quote)?;
    Some(value[..end].trim_ascii())
}

fn is_mostly_utf8(body: &[u8]) -> bool {
    let (mut sound, mut broken) = (0_usize, 0_usize);
    for chunk in body.utf8_chunks() {
        sound += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    sound >= broken.saturating_mul(SOUND_FOR_BROKEN)
}

/// Replaces control characters U+0080 to U+009F, which programs write that take Windows-1252 for Latin-1.
fn with_windows_marks(text: Cow<'_, str>) -> Cow<'_, str> {
    let is_mark = |c: char| ('\u{80}'..='\u{9F}').contains(&c);
    if !text.contains(is_mark) {
        return text;
    }
    let replaced = text.chars().map(|c| match u8::try_from(c) {
        Ok(byte) if is_mark(c) => {
            let (mark, _, _) = WINDOWS_1252.decode(std::slice::from_ref(&byte));
            mark.chars().next().unwrap_or(c)
        }
        _ => c,
    });
    Cow::Owned(replaced.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_is_believed_before_declaration_and_detection() {
        let (russian, ..) = encoding_rs::WINDOWS_1251.encode("<?xml version='1.0'?><a>Рынок</a>");
        assert!(decode(&russian, Some("windows-1251")).contains("Рынок"));
        let (russian, ..) = encoding_rs::KOI8_R.encode("<?xml encoding='KOI8-R'?><a>Рынок</a>");
        assert!(decode(&russian, None).contains("Рынок"));
    }

    #[test]
    fn label_that_bytes_contradict_is_not_believed() {
        for label in [
            "UTF-16",
            "unicode",
            "utf-7",
            "us-ascii",
            "no-such-charset",
            "",
        ] {
            let body = format!("<?xml version='1.0' encoding='{label}'?><a>Plain</a>");
            assert!(
                decode(body.as_bytes(), Some(label)).contains("Plain"),
                "{label}"
            );
        }
        let latin = "<?xml version='1.0' encoding='ISO-8859-1'?><a>é</a>";
        assert!(decode(latin.as_bytes(), Some("iso-8859-1")).contains('é'));
        let (latin, ..) =
            WINDOWS_1252.encode("<?xml version='1.0' encoding='utf-8'?><a>Café olé</a>");
        assert!(decode(&latin, Some("utf-8")).contains("Café"));
    }

    #[test]
    fn japanese_of_seven_bits_is_read() {
        let (body, ..) =
            ISO_2022_JP.encode("<?xml version='1.0' encoding='ISO-2022-JP'?><a>日本</a>");
        assert!(body.is_ascii());
        assert!(decode(&body, None).contains("日本"));
        assert!(decode(&body, Some("us-ascii")).contains("日本"));
    }

    #[test]
    fn one_broken_byte_costs_one_character() {
        let mut body = "<a>Größe über Maß, schöne Grüße".as_bytes().to_vec();
        body.push(0xFF);
        assert!(decode(&body, None).ends_with("Grüße\u{FFFD}"));
    }

    #[test]
    fn wide_encodings_and_marks_are_read() {
        let text = "<?xml version='1.0'?><a>é 漢</a>";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(decode(&little, None), text);
        assert_eq!(decode(&big, Some("utf-8")), text);
        let marked = format!("\u{FEFF}{text}");
        assert_eq!(decode(marked.as_bytes(), Some("windows-1252")), text);
        assert_eq!(decode("don\u{92}t".as_bytes(), None), "don’t");
    }

    #[test]
    fn unpacked_document_is_bounded() {
        use std::io::Write as _;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&vec![b'a'; 1_000_000]).unwrap();
        let packed = encoder.finish().unwrap();
        assert_eq!(unpack(&packed, 5_000).len(), 5_000);
        assert_eq!(unpack(b"<rss>", 5_000).as_ref(), b"<rss>");
        // A stream that was cut off keeps its beginning.
        assert!(!unpack(&packed[..packed.len() / 2], 5_000).is_empty());
    }
}
