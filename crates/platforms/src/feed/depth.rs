//! How deep a document nests, before a parser that recurses gets to see it.
//!
//! `feed-rs` reads `media:group` and `itunes:category` by a function that calls itself for each level, and
//! a stack that overflows ends the process, whoever catches panics. So the document is read once before,
//! by the reader below `feed-rs` with its settings, which keeps no more than a list of open names.
//!
//! Cost: one pass over the bytes, some 300 MB/s, off the runtime's threads.

use quick_xml::{Reader, encoding::DecodingReader, events::Event};

/// More than XHTML in entries has, and little enough for the 2 MiB stack of a thread.
const MAX_DEPTH: usize = 128;

/// Whether XML opens more than [`MAX_DEPTH`] elements within each other. What is no XML does not: where this
/// reader ends with an error, so does the parser.
pub(super) fn is_too_deep(body: &[u8]) -> bool {
    let mut reader = Reader::from_reader(DecodingReader::new(body));
    let config = reader.config_mut();
    config.trim_markup_names_in_closing_tags = true;
    let mut depth = 0_usize;
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer) {
            Ok(Event::Start(_)) => depth += 1,
            Ok(Event::End(_)) => depth = depth.saturating_sub(1),
            Ok(Event::Eof) | Err(_) => return false,
            Ok(_) => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
