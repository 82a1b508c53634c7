//! Checks how deep a document nests, and where it declares its encoding, before the parser, which recurses and
//! panics, sees the document.
//!
//! `feed-rs` reads `media:group` and `itunes:category` with a function that calls itself for each level. A
//! stack overflow ends the process, even where panics are caught. So this module reads the document first, with
//! the reader that `feed-rs` uses and its settings. It stores only a list of the open names.
//!
//! Cost: one pass over the bytes, some 300 MB/s, off the runtime's threads.

use std::{
    cell::Cell,
    io::{self, BufRead, Read},
};

use quick_xml::{Reader, encoding::DecodingReader, events::Event};

/// More than XHTML in entries needs, and safe for the 2 MiB stack of a thread.
const MAX_DEPTH: usize = 128;
pub(super) const TOO_DEEP: &str = "elements are nested too deeply";
pub(super) const LATE_DECLARATION: &str = "an XML declaration of another encoding, too late";
/// A readable feed has no errors, or some garbage after its end.
const MAX_ERRORS: usize = 64;
pub(super) const BROKEN: &str = "too many errors of syntax";

/// Finds input that the parser must not see: XML that nests deeper than [`MAX_DEPTH`] elements, and a
/// declaration of another encoding after text that is already decoded, which makes the parser panic. The parser
/// looks one event ahead of what it reads, past errors too, so this reader also continues after errors.
pub(super) fn flaw(body: &[u8]) -> Option<&'static str> {
    // The parser distinguishes XML from JSON like this.
    if body.iter().find(|byte| matches!(byte, b'<' | b'{')) != Some(&b'<') {
        return None;
    }
    let mut reader = Reader::from_reader(DecodingReader::new(Body::new(body)));
    let config = reader.config_mut();
    config.expand_empty_elements = true;
    config.trim_markup_names_in_closing_tags = true;
    let (mut depth, mut errors) = (0_usize, 0_usize);
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer) {
            Ok(Event::Start(_)) => depth += 1,
            Ok(Event::End(_)) => depth = depth.saturating_sub(1),
            Ok(Event::Decl(declaration)) => {
                let decoder = reader.get_mut();
                // Same as the parser: otherwise this reader would stop where the parser continues.
                match declaration.encoder() {
                    Some(encoding) if encoding == decoder.encoding() => {}
                    Some(_) if decoder.get_ref().is_read.get() => return Some(LATE_DECLARATION),
                    Some(encoding) => decoder.set_encoding(encoding),
                    None => {}
                }
            }
            Ok(Event::Eof) => return None,
            Ok(_) => {}
            Err(_) if errors == MAX_ERRORS => return Some(BROKEN),
            Err(_) => errors += 1,
        }
        if depth > MAX_DEPTH {
            return Some(TOO_DEEP);
        }
    }
}

/// The document, and whether the decoder is past the few bytes that it holds back for a declaration. It copies
/// these bytes, and reads the rest in place.
struct Body<'a> {
    rest: &'a [u8],
    is_read: Cell<bool>,
}

impl<'a> Body<'a> {
    fn new(rest: &'a [u8]) -> Self {
        Self {
            rest,
            is_read: Cell::new(false),
        }
    }
}

impl Read for Body<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.rest.read(buffer)
    }
}

impl BufRead for Body<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.is_read.set(true);
        Ok(self.rest)
    }

    fn consume(&mut self, amount: usize) {
        self.rest.consume(amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_too_deep(body: &[u8]) -> bool {
        flaw(body) == Some(TOO_DEEP)
    }

    #[test]
    fn an_encoding_hides_no_depth_and_is_declared_in_time() {
        let declared = "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>";
        // The declaration comes after text that is decoded before the declaration is read.
        let mut latin = format!("{declared}<rss>{}", " ".repeat(100)).into_bytes();
        latin.push(0xe9);
        assert_eq!(flaw(&latin), None);
        latin.extend("<media:group>".repeat(1_000).bytes());
        assert_eq!(flaw(&latin), Some(TOO_DEEP));
        let late = format!("<rss>{}{declared}</rss>", " ".repeat(100));
        assert_eq!(flaw(late.as_bytes()), Some(LATE_DECLARATION));
        let plain = format!(
            "<rss>{}<?xml version=\"1.0\" encoding=\"utf-8\"?></rss>",
            " ".repeat(100)
        );
        assert_eq!(flaw(plain.as_bytes()), None);
    }

    #[test]
    fn an_error_hides_nothing_that_follows() {
        let behind = format!(
            "<rss version=\"2.0\"><channel>{}</wrong><?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>",
            " ".repeat(100)
        );
        assert_eq!(flaw(behind.as_bytes()), Some(LATE_DECLARATION));
        let deep = format!("<rss></wrong>{}", "<media:group>".repeat(1_000));
        assert_eq!(flaw(deep.as_bytes()), Some(TOO_DEEP));
        let broken = format!("<rss>{}", "</wrong>".repeat(1_000));
        assert_eq!(flaw(broken.as_bytes()), Some(BROKEN));
    }

    #[test]
    fn only_open_elements_count() {
        let open = |levels: usize| format!("<rss>{}", "<media:group>".repeat(levels - 1));
        assert!(!is_too_deep(open(MAX_DEPTH).as_bytes()));
        assert!(is_too_deep(open(MAX_DEPTH + 1).as_bytes()));
        let wide = format!("<rss>{}</rss>", "<a><b/><c></c></a>".repeat(1_000));
        assert!(!is_too_deep(wide.as_bytes()));
        let text = format!("<rss><![CDATA[{}]]>", "<a>".repeat(1_000));
        assert!(!is_too_deep(text.as_bytes()));
        let wide: Vec<u8> = std::iter::once(0xFEFF)
            .chain(open(1_000).encode_utf16())
            .flat_map(u16::to_le_bytes)
            .collect();
        assert!(is_too_deep(&wide));
        assert!(!is_too_deep(b"{\"items\": []}"));
    }
}
