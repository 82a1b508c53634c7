//! Reads a document as markup, without ever refusing it.
//!
//! The tokenizer is HTML's, which defines what every input means: a lone `&` or `<` is text, an attribute needs
//! neither quotes nor a value, and a tag that is never closed does no harm. For sound XML it yields the same events as
//! an XML parser, once CDATA sections, processing instructions and comments are taken out, which HTML reads otherwise.
//! Entities that a document declares are not expanded.
//!
//! Cost: linear in the document. Only the tag that is being read is held, with at most [`MAX_ATTRIBUTES`] attributes
//! of [`MAX_VALUE_BYTES`] each.

use std::convert::Infallible;

use html5gum::{
    Span, Tokenizer,
    emitters::callback::{CallbackEmitter, CallbackEvent},
};

/// More than feeds have. Further ones are ignored.
const MAX_ATTRIBUTES: usize = 64;
/// The longest name or value that is kept.
const MAX_VALUE_BYTES: usize = 8 * 1024;

/// A start tag. Names are in lower case.
#[derive(Debug, Default)]
pub(super) struct Tag {
    pub(super) name: String,
    attributes: Vec<(String, String)>,
}

impl Tag {
    /// The value of the first attribute of this name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.all()
            .find(|(own, _)| *own == name)
            .map(|(_, value)| value)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.attributes
            .iter()
            .map(|(name, value)| (&**name, &**value))
    }
}

/// Receives the parts of a document in their order.
pub(super) trait Sink {
    fn start(&mut self, tag: &Tag, is_empty: bool);
    fn end(&mut self, name: &str);
    /// Text whose references are resolved.
    fn text(&mut self, text: &str);
    /// The name of the element whose text is being read.
    fn open_text(&self) -> Option<&str>;
}

pub(super) fn read(document: &str, sink: &mut impl Sink) {
    let mut ends = Ends::default();
    let mut rest = document;
    let mut plain = 0;
    while let Some(found) = rest[plain..].find('<') {
        let at = plain + found;
        let special = &rest[at..];
        if ![CDATA, "<!--", "<?"]
            .iter()
            .any(|begin| special.starts_with(begin))
        {
            plain = at + 1;
            continue;
        }
        tokenize(&rest[..at], sink);
        let length = if let Some(inner) = special.strip_prefix(CDATA) {
            let (text, end) = match ends.cdata.find(inner, "]]>") {
                Some(end) => (&inner[..end], "]]>"),
                None => (unclosed(inner, sink.open_text()), ""),
            };
            sink.text(text);
            CDATA.len() + text.len() + end.len()
        } else if let Some(inner) = special.strip_prefix("<!--") {
            // A comment that is never closed is none.
            4 + ends.comment.find(inner, "-->").map_or(0, |end| end + 3)
        } else {
            let inner = &special[2..];
            let end = ends.instruction.find(inner, "?>").map(|end| end + 2);
            let end = end.or_else(|| Some(ends.tag.find(inner, ">")? + 1));
            2 + end.unwrap_or(0)
        };
        rest = &special[length..];
        plain = 0;
    }
    tokenize(rest, sink);
}

const CDATA: &str = "<![CDATA[";

#[derive(Default)]
struct Ends {
    cdata: End,
    comment: End,
    instruction: End,
    tag: End,
}

/// An end that is looked for until it was not found once: so all searches together read the document once.
#[derive(Default)]
struct End {
    is_missing: bool,
}

impl End {
    fn find(&mut self, text: &str, end: &str) -> Option<usize> {
        let found = if self.is_missing {
            None
        } else {
            text.find(end)
        };
        self.is_missing = found.is_none();
        found
    }
}

/// The text of a CDATA section that is never closed: it ends with its element.
fn unclosed<'a>(inner: &'a str, element: Option<&str>) -> &'a str {
    let end = element.and_then(|element| {
        let end_tag = format!("</{element}");
        let mut parts = inner.as_bytes().windows(end_tag.len());
        parts.position(|part| part.eq_ignore_ascii_case(end_tag.as_bytes()))
    });
    &inner[..end.unwrap_or(inner.len())]
}

fn tokenize(markup: &str, sink: &mut impl Sink) {
    if !markup.contains(['<', '&']) {
        if !markup.is_empty() {
            sink.text(markup);
        }
        return;
    }
    let mut tag = Tag::default();
    let emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                tag.name = bounded(name);
                tag.attributes.clear();
            }
            CallbackEvent::AttributeName { name } => {
                if tag.attributes.len() < MAX_ATTRIBUTES {
                    tag.attributes.push((bounded(name), String::new()));
                }
            }
            CallbackEvent::AttributeValue { value } => {
                if let Some((_, last)) = tag.attributes.last_mut()
                    && last.is_empty()
                {
                    *last = bounded(value);
                }
            }
            CallbackEvent::CloseStartTag { self_closing } => sink.start(&tag, self_closing),
            CallbackEvent::EndTag { name } => sink.end(&bounded(name)),
            CallbackEvent::String { value } => sink.text(&String::from_utf8_lossy(value)),
            CallbackEvent::Comment { .. }
            | CallbackEvent::Doctype { .. }
            | CallbackEvent::Error(_) => {}
        }
        None::<Infallible>
    });
    match Tokenizer::new_with_emitter(markup, emitter).finish() {
        Ok(()) => {}
        Err(never) => match never {},
    }
}

fn bounded(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_VALUE_BYTES)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Log(String);

    impl Sink for Log {
        fn start(&mut self, tag: &Tag, is_empty: bool) {
            let attributes: Vec<_> = tag
                .all()
                .map(|(name, value)| format!(" {name}={value}"))
                .collect();
            let end = if is_empty { "/" } else { "" };
            self.0 += &format!("[{}{}{end}]", tag.name, attributes.concat());
        }

        fn end(&mut self, name: &str) {
            self.0 += &format!("[/{name}]");
        }

        fn text(&mut self, text: &str) {
            self.0 += text;
        }

        fn open_text(&self) -> Option<&str> {
            Some("d")
        }
    }

    fn log(document: &str) -> String {
        let mut log = Log::default();
        read(document, &mut log);
        log.0
    }

    #[test]
    fn sound_markup_is_read_as_xml() {
        let sound = "<?xml version='1.0'?><!-- <b> --><A:B c=\"1 &amp; 2\"><d/>x &lt; <![CDATA[<e> & ]]>&#x41;</A:B>";
        assert_eq!(log(sound), "[a:b c=1 & 2][d/]x < <e> & A[/a:b]");
        assert_eq!(log("<?php echo '>'; ?><a>"), "[a]");
        assert_eq!(log("<!-- a --b --> <a>"), " [a]");
    }

    #[test]
    fn broken_markup_is_read() {
        assert_eq!(log("<a b=c d>x & y < z</a"), "[a b=c d=]x & y < z");
        assert_eq!(log("<!-- never closed <a>x"), " never closed [a]x");
        assert_eq!(log("<d><![CDATA[x</d><d>y"), "[d]x[/d][d]y");
        assert_eq!(log("<a>&nosuch; &copy;"), "[a]&nosuch; ©");
    }

    #[test]
    fn tags_are_bounded() {
        let many: String = (0..100_000).map(|number| format!(" a{number}")).collect();
        let mut log = Log::default();
        read(&format!("<b{many} c='{}'>", "x".repeat(100_000)), &mut log);
        assert!(
            log.0.len() < MAX_VALUE_BYTES + MAX_ATTRIBUTES * 10,
            "{}",
            log.0.len()
        );
    }
}
