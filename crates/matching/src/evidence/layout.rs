//! The layout of a post: which words are in the title, in prose, in a list, in a link.
//!
//! A name in a link address, a price list or a quotation is not a mention of it, and the title says more about the
//! subject than the tenth paragraph. Cost: one pass over the bytes of the post.

use std::ops::Range;

/// Kind of text that a byte of a post belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Zone {
    /// The title, or the first sentence of a post without one.
    Title,
    /// Running text.
    Prose,
    /// Item of a list.
    List,
    /// Table row or line with a price and a link, as shops and parts lists print it.
    PriceList,
    /// Text that the author quotes from another person.
    Quote,
    /// Address of a link.
    Link,
    Code,
    /// Closing line that names the sender of the post.
    Signature,
}

impl Zone {
    /// Returns how much a mention in this kind of text counts, from 0 to 1.
    pub(crate) fn mention(self) -> f64 {
        match self {
            Self::Title | Self::Prose => 1.0,
            Self::List => 0.5,
            Self::PriceList | Self::Quote | Self::Link | Self::Code | Self::Signature => 0.0,
        }
    }
}

/// A sentence, or a line without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sentence {
    pub(crate) range: Range<usize>,
    pub(crate) zone: Zone,
    /// True if the sentence ends with a question mark.
    pub(crate) asks: bool,
}

/// Zones and sentences of a post.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// Sentences in the order of the text; the gaps between them contain no words.
    pub(crate) sentences: Vec<Sentence>,
    /// Byte ranges of link addresses, ascending.
    links: Vec<Range<usize>>,
    /// End of the title; a post without a title uses its first sentence.
    pub(crate) title_end: usize,
}

/// Maximum length of a first sentence that serves as the title, in bytes.
const MAX_OPENING: usize = 240;
/// Maximum number of sentences; the rest of the text counts as one.
const MAX_SENTENCES: usize = 2_000;
/// Maximum length of a price line; a longer line with a price is prose.
const MAX_PRICE_LINE: usize = 160;
const MAX_SIGNATURE: usize = 120;

impl Layout {
    /// `source` is the title, an empty line, and the text; the title ends at byte `title`.
    pub(crate) fn of(source: &str, title: usize) -> Self {
        let mut layout = Self {
            links: links(source),
            ..Self::default()
        };
        let mut at = 0;
        let mut signed = false;
        for line in source.split_inclusive('\n') {
            let range = at..at + line.len();
            at = range.end;
            if line.trim().is_empty() {
                continue;
            }
            let zone = if range.start < title {
                Zone::Title
            } else {
                let zone = layout.zone_of_line(line, &range);
                signed |= zone == Zone::Signature;
                if signed && line.len() <= MAX_SIGNATURE {
                    Zone::Signature
                } else {
                    signed = false;
                    zone
                }
            };
            layout.add_line(source, range, zone);
        }
        layout.title_end = title;
        if title == 0
            && let Some(first) = layout.sentences.first_mut()
            && matches!(first.zone, Zone::Prose)
        {
            first.zone = Zone::Title;
            let end = first.range.start + MAX_OPENING;
            layout.title_end = first.range.end.min(source.floor_char_boundary(end));
        }
        layout
    }

    /// Returns the sentence that contains the byte.
    pub(crate) fn sentence(&self, at: usize) -> usize {
        let behind = self.sentences.partition_point(|s| s.range.end <= at);
        behind.min(self.sentences.len().saturating_sub(1))
    }

    pub(crate) fn zone(&self, at: usize) -> Zone {
        let link = self.links.partition_point(|link| link.end <= at);
        if self.links.get(link).is_some_and(|link| link.start <= at) {
            return Zone::Link;
        }
        match self.sentences.get(self.sentence(at)) {
            Some(first) if first.zone == Zone::Title && at >= self.title_end => Zone::Prose,
            Some(sentence) => sentence.zone,
            None => Zone::Prose,
        }
    }

    /// Returns how much a mention counts, from 0 to 1.
    pub(crate) fn mention(&self, source: &str, start: usize, end: usize) -> f64 {
        if self.is_title_suffix(source, start, end) {
            return 0.0;
        }
        self.zone(start).mention()
    }

    /// Returns whether the bytes are the last part of the title, where pages name their site (`A video - YouTube`).
    fn is_title_suffix(&self, source: &str, start: usize, end: usize) -> bool {
        if end > self.title_end {
            return false;
        }
        let after = source[end..self.title_end].trim_start_matches(".com");
        let before = source[..start].trim_end();
        let title = before.trim_end_matches(['-', '–', '—', '|', '·', '»']);
        let is_separated = title.len() < before.len()
            && before.len() < start
            && title.ends_with(char::is_whitespace);
        is_separated && !title.trim().is_empty() && after.trim().is_empty()
    }

    fn zone_of_line(&self, line: &str, range: &Range<usize>) -> Zone {
        let text = line.trim_end();
        if text.starts_with("    ") || text.starts_with('\t') || text.starts_with("```") {
            return Zone::Code;
        }
        let text = text.trim_start();
        if text.starts_with('>') || text.starts_with("&gt;") {
            return Zone::Quote;
        }
        let begins = |words: &str| {
            let begin = text.as_bytes().get(..words.len());
            begin.is_some_and(|begin| begin.eq_ignore_ascii_case(words.as_bytes()))
        };
        if begins("sent from my ")
            || begins("posted from ")
            || (matches!(text, "--" | "---" | "___") && range.start > 0)
        {
            return Zone::Signature;
        }
        let bars = text.bytes().filter(|&b| b == b'|').count();
        let bullet = is_bullet(text);
        let next = (self.links).partition_point(|link| link.start < range.start);
        let link = (self.links.get(next)).is_some_and(|link| link.start < range.end);
        if bars >= 2
            || (text.len() <= MAX_PRICE_LINE && (link || bullet || bars > 0) && has_price(text))
        {
            return Zone::PriceList;
        }
        if bullet { Zone::List } else { Zone::Prose }
    }

    /// Cuts a line into sentences.
    fn add_line(&mut self, source: &str, range: Range<usize>, zone: Zone) {
        let line = &source[range.clone()];
        let mut start = 0;
        let mut chars = line.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let end = at + c.len_utf8();
            let ends = match c {
                '。' | '！' | '？' => true,
                '.' | '!' | '?' | '…' => chars.peek().is_none_or(|(_, next)| {
                    next.is_whitespace() || matches!(next, '"' | '\'' | ')' | '”')
                }),
                _ => false,
            };
            // `Dr. Martens`, `vs. Nike`
            let abbreviation = ends && c == '.' && {
                let word = line[start..at]
                    .rsplit(|c: char| !c.is_alphanumeric())
                    .next();
                word.is_some_and(|word| {
                    word.chars().count() <= 2
                        || matches!(word, "vs" | "Inc" | "Mrs" | "etc" | "approx")
                })
            };
            if ends && !abbreviation {
                self.push(source, range.start + start..range.start + end, zone);
                start = end;
            }
        }
        self.push(source, range.start + start..range.end, zone);
    }

    fn push(&mut self, source: &str, range: Range<usize>, zone: Zone) {
        let text = source[range.clone()].trim_end();
        let has_words = text.chars().any(char::is_alphanumeric);
        let marks = ['!', '.', '…', ')', '"', '\'', '”'];
        let asks = text.trim_end_matches(marks).ends_with(['?', '？']);
        let is_full = self.sentences.len() >= MAX_SENTENCES;
        match self.sentences.last_mut() {
            // `?!`, `...` and closing brackets belong to the sentence before.
            Some(last) if !has_words || is_full => {
                if !text.is_empty() {
                    last.asks |= asks;
                }
                last.range.end = range.end;
            }
            _ => self.sentences.push(Sentence { range, zone, asks }),
        }
    }
}

fn is_bullet(line: &str) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &line[digits..];
    match digits {
        0 => ["* ", "- ", "+ ", "• ", "– "]
            .iter()
            .any(|mark| line.starts_with(mark)),
        1 | 2 => rest.starts_with(". ") || rest.starts_with(") "),
        _ => false,
    }
}

/// Returns whether a line contains an amount of money: `$199`, `20 €`.
fn has_price(line: &str) -> bool {
    let mut before_digit = false;
    let mut after_digit = false;
    for c in line.chars() {
        let money = matches!(c, '$' | '€' | '£' | '¥');
        if (money && after_digit) || (before_digit && c.is_ascii_digit()) {
            return true;
        }
        if money {
            before_digit = true;
        } else if !c.is_whitespace() {
            before_digit = false;
            after_digit = c.is_ascii_digit();
        }
    }
    false
}

/// Returns addresses with a scheme or `www.`, and targets of Markdown links.
fn links(source: &str) -> Vec<Range<usize>> {
    let bytes = source.as_bytes();
    let mut links: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let start = match byte {
            b'h' | b'H' if starts_with(bytes, at, b"http://") => at,
            b'h' | b'H' if starts_with(bytes, at, b"https://") => at,
            b'w' | b'W' if starts_with(bytes, at, b"www.") => at,
            b']' if bytes.get(at + 1) == Some(&b'(') => at + 2,
            _ => {
                at += 1;
                continue;
            }
        };
        let markdown = byte == b']';
        let end = bytes[start..].iter().position(|&b| {
            b.is_ascii_whitespace()
                || matches!(b, b'<' | b'>' | b'"')
                || (b == b')' && markdown)
                || b == b']'
        });
        let end = end.map_or(bytes.len(), |end| start + end);
        if end > start {
            links.push(start..end);
        }
        at = end.max(at + 1);
    }
    links
}

fn starts_with(bytes: &[u8], at: usize, prefix: &[u8]) -> bool {
    // Only at the start of a word.
    (at == 0 || !bytes[at - 1].is_ascii_alphanumeric())
        && bytes
            .get(at..at + prefix.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(prefix))
}

#[cfg(test)]
mod tests {
    use super::{Layout, Zone};

    fn zone_of(title: &str, text: &str, word: &str) -> Zone {
        let source = format!("{title}\n\n{text}");
        let layout = Layout::of(&source, title.len());
        layout.zone(source.find(word).unwrap())
    }

    /// A cost that is quadratic would exceed the runner's limit, which is minutes.
    #[test]
    fn lines_do_not_look_through_all_links_before_them() {
        let text = format!("{}{}", "](a".repeat(300_000), "\na".repeat(300_000));
        assert!(Layout::of(&text, 0).links.len() > 100_000);
    }

    #[test]
    fn words_have_the_zone_of_their_line() {
        let text = "I bought a NAME1 today.\n\n> they said NAME2 is fine\n\n* NAME3 was ok\n\
                    * [NAME4 drive](http://shop.example/NAME5) $59 at NAME6\n\
                    CPU | NAME7 | $10\n    let NAME8 = 1;\nSee https://NAME9.example/a or www.NAME10.example.\n\
                    Read [the NAME11 page](https://NAME12.example).\nSent from my NAME13 phone";
        for (word, zone) in [
            ("NAME0", Zone::Title),
            ("NAME1 ", Zone::Prose),
            ("NAME2", Zone::Quote),
            ("NAME3", Zone::List),
            ("NAME4", Zone::PriceList),
            ("NAME5", Zone::Link),
            ("NAME6", Zone::PriceList),
            ("NAME7", Zone::PriceList),
            ("NAME8", Zone::Code),
            ("NAME9", Zone::Link),
            ("NAME10", Zone::Link),
            ("NAME11", Zone::Prose),
            ("NAME12", Zone::Link),
            ("NAME13", Zone::Signature),
        ] {
            assert_eq!(zone_of("About NAME0", text, word), zone, "{word}");
        }
    }

    #[test]
    fn suffix_of_a_title_does_not_count_as_mention() {
        for (title, mention) in [
            ("A video - NAME", 0.0),
            ("A video — NAME.com ", 0.0),
            ("A video | NAME", 0.0),
            ("NAME", 1.0),
            ("- NAME", 1.0),
            ("co-NAME", 1.0),
            ("A video - NAME again", 1.0),
        ] {
            let layout = Layout::of(title, title.len());
            let start = title.find("NAME").unwrap();
            assert_eq!(layout.mention(title, start, start + 4), mention, "{title}");
        }
    }

    #[test]
    fn first_sentence_of_a_post_without_title_is_its_title() {
        let text = "Is Acme down? I cannot log in to NAME.";
        assert_eq!(zone_of("", text, "Acme"), Zone::Title);
        assert_eq!(zone_of("", text, "NAME"), Zone::Prose);
    }

    #[test]
    fn sentences_end_at_stops_and_not_at_abbreviations() {
        let source = "Why?!\n\nDr. Martens vs. Nike. Which one? Ok";
        let layout = Layout::of(source, 5);
        let texts: Vec<_> = layout
            .sentences
            .iter()
            .map(|s| (source[s.range.clone()].trim(), s.asks))
            .collect();
        assert_eq!(
            texts,
            [
                ("Why?!", true),
                ("Dr. Martens vs. Nike.", false),
                ("Which one?", true),
                ("Ok", false)
            ]
        );
    }
}
