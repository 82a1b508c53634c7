//! Reads a document as markup, without ever refusing it.
//!
//! The tokenizer is HTML's, which defines what every input means: a lone `&` or `<` is text, an attribute needs
//! neither quotes nor a value, and a tag that is never closed does no harm. For sound XML it yields the same events as
//! an XML parser, once CDATA sections, processing instructions and comments are taken out, which HTML reads otherwise.
//! Entities that a document declares are not expanded.
//!
//! Cost: linear in the document. Only the tag that is being read is held, with at most [`MAX_ATTRIBUTES`] attributes
//! of [`MAX_VALUE_BYTES`] each.

use std::{borrow::Cow, convert::Infallible};

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
    let mut cdata = [Search::new("]]>"), Search::new(CDATA)];
    let mut comments = [Search::new("-->"), Search::new(COMMENT)];
    let (mut start, mut plain) = (0, 0);
    while let Some(found) = document[plain..].find('<') {
        let at = plain + found;
        let special = &document[at..];
        if ![CDATA, COMMENT, "<?"]
            .iter()
            .any(|begin| special.starts_with(begin))
        {
            plain = at + 1;
            continue;
        }
        tokenize(&document[start..at], sink);
        start = if special.starts_with(CDATA) {
            let inner = at + CDATA.len();
            let [end, next] = cdata.each_mut().map(|search| search.from(document, inner));
            let text = section(&document[inner..], (end, next), inner, sink.open_text());
            sink.text(text);
            let after = inner + text.len();
            after + if end == Some(after) { 3 } else { 0 }
        } else if special.starts_with(COMMENT) {
            let inner = at + COMMENT.len();
            let [end, next] = comments
                .each_mut()
                .map(|search| search.from(document, inner));
            // A comment that is not closed before the next one begins is text.
            match end {
                Some(end) if next.is_none_or(|next| end < next) => end + 3,
                _ => inner,
            }
        } else {
            let inner = &special[2..];
            let inner = &inner[..inner.find('<').unwrap_or(inner.len())];
            let end = inner.find("?>").map(|end| end + 2);
            let end = end.or_else(|| Some(inner.find('>')? + 1));
            at + 2 + end.unwrap_or(0)
        };
        plain = start;
    }
    tokenize(&document[start..], sink);
}

const CDATA: &str = "<![CDATA[";
const COMMENT: &str = "<!--";

/// Looks for a text from ever later places, and reads the document only once.
struct Search {
    text: &'static str,
    found: Option<usize>,
    is_done: bool,
}

impl Search {
    fn new(text: &'static str) -> Self {
        Self {
            text,
            found: None,
            is_done: false,
        }
    }

    fn from(&mut self, document: &str, place: usize) -> Option<usize> {
        if !self.is_done && self.found.is_none_or(|found| found < place) {
            self.found = document[place..].find(self.text).map(|found| place + found);
            self.is_done = self.found.is_none();
        }
        self.found
    }
}

/// The text of a CDATA section at `place`, given the places of the next end and the next begin. The section was not
/// closed if its element ends before the next section begins.
fn section<'a>(
    inner: &'a str,
    (end, next): (Option<usize>, Option<usize>),
    place: usize,
    element: Option<&str>,
) -> &'a str {
    match (end, next) {
        (Some(end), next) if next.is_none_or(|next| end < next) => &inner[..end - place],
        (end, next) => {
            let before_next = next.map_or(inner, |next| &inner[..next - place]);
            match (end, unclosed(before_next, element)) {
                (Some(end), text) if text.len() == before_next.len() => &inner[..end - place],
                (_, text) => text,
            }
        }
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

/// Escapes what is markup in HTML by error: `&section=` is no reference, and `<b</title>` begins with a text.
fn without_errors(markup: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut written = 0;
    for (at, c) in markup.match_indices(['&', '<']) {
        let rest = &markup[at + 1..];
        let escape = match c {
            "&" if !is_reference(rest) => "&amp;",
            "<" if rest.starts_with(|c: char| c.is_ascii_alphabetic()) && !is_tag(rest) => "&lt;",
            _ => continue,
        };
        out.push_str(&markup[written..at]);
        out.push_str(escape);
        written = at + 1;
    }
    if written == 0 {
        return Cow::Borrowed(markup);
    }
    out.push_str(&markup[written..]);
    Cow::Owned(out)
}

/// Returns true if a name or a number with a semicolon follows.
fn is_reference(rest: &str) -> bool {
    const LONGEST: usize = 40;
    let mut bytes = rest.bytes().take(LONGEST);
    let end = bytes.position(|byte| !(byte.is_ascii_alphanumeric() || byte == b'#'));
    end.is_some_and(|end| end > 0 && rest.as_bytes().get(end) == Some(&b';'))
}

/// Returns true if no other tag begins within the name of this one.
fn is_tag(rest: &str) -> bool {
    let end = rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/' | '<'));
    end.is_none_or(|end| rest.as_bytes()[end] != b'<')
}

fn tokenize(markup: &str, sink: &mut impl Sink) {
    if !markup.contains(['<', '&']) {
        if !markup.is_empty() {
            sink.text(markup);
        }
        return;
    }
    let markup = without_errors(markup);
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
    match Tokenizer::new_with_emitter(&*markup, emitter).finish() {
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
        assert_eq!(
            log("<d>?id=2&section=b&copy=1&#65;</d>"),
            "[d]?id=2&section=b&copy=1A[/d]"
        );
        assert_eq!(log("<d>a <b</d><e>"), "[d]a <b[/d][e]");
        assert_eq!(
            log("<?xml version='1.0'><a>1<![CDATA[<?php ?>]]>"),
            "[a]1<?php ?>"
        );
        assert_eq!(
            log("<d><![CDATA[One</d><d><![CDATA[Two]]></d>"),
            "[d]One[/d][d]Two[/d]"
        );
        assert_eq!(
            log("<d><![CDATA[One <![CDATA[two]]></d>"),
            "[d]One <![CDATA[two[/d]"
        );
        assert_eq!(log("<!-- open <a> <!-- ok --><b>"), " open [a] [b]");
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
