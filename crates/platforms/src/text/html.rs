//! Converts HTML to plain text token by token: it builds no tree, so nesting costs nothing.

use std::convert::Infallible;

use html5gum::{
    Span, Tokenizer,
    emitters::callback::{CallbackEmitter, CallbackEvent},
};

/// Returns the text that a reader sees: blocks on separate lines, entities decoded, scripts and styles removed.
/// Links keep their text; a link text that the site shortened becomes the whole address.
pub fn from_html(html: &str) -> String {
    let html = super::bounded(html);
    if !html.contains(['<', '&']) {
        return super::block(html);
    }
    let once = read(html);
    // Feeds escape twice: after decoding, nothing but markup is left.
    if !html.contains('<') && (once.contains("</") || once.contains("<br")) {
        return super::block(&read(&once));
    }
    super::block(&once)
}

/// Decodes the entities of `text`, and nothing else.
pub fn decode_entities(text: &str) -> String {
    let text = super::bounded(text);
    if !text.contains('&') {
        return text.to_owned();
    }
    read(&text.replace('<', "&lt;"))
}

fn read(html: &str) -> String {
    let mut text = Text::default();
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| {
        text.event(&event);
        None::<Infallible>
    });
    emitter.naively_switch_states(true);
    match Tokenizer::new_with_emitter(html, emitter).finish() {
        Ok(()) => {}
        Err(never) => match never {},
    }
    text.out
}

/// Mastodon puts `RE: <address>` into an element of this class before the text of a status that quotes another one.
const QUOTE: &str = "quote-inline";

#[derive(Default)]
struct Text {
    out: String,
    /// The start tag that is being read.
    tag: String,
    /// Name of its current attribute.
    attribute: Vec<u8>,
    href: Option<String>,
    /// True if it is a fallback for readers that show no quotes, which the author did not write.
    is_quote: bool,
    /// The hidden element is such a fallback.
    hides_quote: bool,
    /// The hidden element that the parser is in.
    hidden: Option<String>,
    /// Elements of the same name that are open in a hidden fallback.
    depth: usize,
    /// Number of open `pre` elements.
    preformatted: usize,
    /// The open link's address, and the position where its text starts.
    link: Option<(String, usize)>,
}

impl Text {
    fn event(&mut self, event: &CallbackEvent<'_>) {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag = lossy(name);
                self.attribute.clear();
                self.href = None;
                self.is_quote = false;
            }
            CallbackEvent::AttributeName { name } => self.attribute = name.to_vec(),
            CallbackEvent::AttributeValue { value } => {
                if self.attribute == b"href" && self.href.is_none() {
                    self.href = Some(lossy(value));
                } else if self.attribute == b"class" {
                    let classes = lossy(value);
                    self.is_quote |= classes.split_whitespace().any(|class| class == QUOTE);
                }
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                let tag = std::mem::take(&mut self.tag);
                self.open(&tag, *self_closing);
            }
            CallbackEvent::EndTag { name } => self.close(&lossy(name)),
            CallbackEvent::String { value } => self.characters(&lossy(value)),
            CallbackEvent::Comment { .. }
            | CallbackEvent::Doctype { .. }
            | CallbackEvent::Error(_) => {}
        }
    }

    fn characters(&mut self, run: &str) {
        if self.hidden.is_some() {
            return;
        }
        if self.preformatted > 0 {
            self.out.push_str(run);
            return;
        }
        for c in run.chars() {
            if !c.is_whitespace() {
                self.out.push(c);
            } else if !self.out.is_empty() && !self.out.ends_with([' ', '\n']) {
                self.out.push(' ');
            }
        }
    }

    fn open(&mut self, name: &str, self_closing: bool) {
        if let Some(hidden) = &self.hidden {
            self.depth += usize::from(self.hides_quote && hidden == name && !self_closing);
            return;
        }
        self.hides_quote = self.is_quote;
        match name {
            name if self.is_quote && !self_closing => self.hidden = Some(name.to_owned()),
            "script" | "style" | "noscript" | "iframe" | "noembed" | "noframes" | "template"
            | "svg" | "head"
                if !self_closing =>
            {
                self.hidden = Some(name.to_owned());
            }
            "br" => self.out.push('\n'),
            "hr" => self.end_block(2),
            "li" => {
                self.end_block(1);
                self.out.push_str("- ");
            }
            "pre" => {
                self.end_block(2);
                self.preformatted += 1;
            }
            "td" | "th" => self.characters(" "),
            "a" => self.link = self.href.take().map(|href| (href, self.out.len())),
            name => self.end_block(lines_around(name)),
        }
    }

    fn close(&mut self, name: &str) {
        if let Some(hidden) = &self.hidden {
            match hidden == name {
                true if self.depth > 0 => self.depth -= 1,
                true => self.hidden = None,
                false => {}
            }
            return;
        }
        match name {
            "pre" => {
                self.preformatted = self.preformatted.saturating_sub(1);
                self.end_block(2);
            }
            "a" => self.complete_link(),
            name => self.end_block(lines_around(name)),
        }
    }

    /// Hacker News shortens long addresses: `https://example.com/a/long...`.
    fn complete_link(&mut self) {
        let Some((href, start)) = self.link.take() else {
            return;
        };
        let shown = self.out.get(start..).unwrap_or_default();
        let whole = shown.strip_suffix("...").or(shown.strip_suffix('…'));
        if whole.is_some_and(|shown| shown.contains("://") && href.starts_with(shown)) {
            self.out.truncate(start);
            self.out.push_str(&href);
        }
    }

    fn end_block(&mut self, lines: usize) {
        if lines == 0 || self.out.is_empty() {
            return;
        }
        while self.out.ends_with(' ') {
            self.out.pop();
        }
        // A list item's dash is not a line yet.
        if self.out.ends_with("\n-") || self.out == "-" {
            self.out.push(' ');
            return;
        }
        let tail = self.out.bytes().rev().take(lines);
        for _ in tail.take_while(|b| *b == b'\n').count()..lines {
            self.out.push('\n');
        }
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn lines_around(name: &str) -> usize {
    match name {
        "p" | "blockquote" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "ul" | "ol" | "table"
        | "dl" | "figure" => 2,
        "div" | "section" | "article" | "header" | "footer" | "main" | "aside" | "nav" | "tr"
        | "dt" | "dd" | "figcaption" | "details" | "summary" | "form" | "address" | "title"
        | "option" => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::from_html;

    #[test]
    fn paragraphs_and_entities_become_text() {
        assert_eq!(
            from_html("Hi &amp; hello &#x2F; there.<p>Second <i>one</i><br>line"),
            "Hi & hello / there.\n\nSecond one\nline"
        );
    }

    #[test]
    fn invisible_html_is_left_out() {
        assert_eq!(
            from_html("<style>p{}</style>a<script>if (a</b) '<p>'</script><!-- c -->b"),
            "ab"
        );
    }

    #[test]
    fn lists_and_code_keep_their_shape() {
        assert_eq!(
            from_html("<ul><li><p>one</p></li><li>two</li></ul><pre><code>a\n  b</code></pre>"),
            "- one\n\n- two\n\na\n  b"
        );
    }

    #[test]
    fn a_shortened_link_shows_its_address() {
        let html = r#"<a href="https:&#x2F;&#x2F;a.example&#x2F;b&#x2F;cd" rel="nofollow">https:&#x2F;&#x2F;a.example&#x2F;b...</a>"#;
        assert_eq!(from_html(html), "https://a.example/b/cd");
    }

    #[test]
    fn text_escaped_twice_is_unescaped_twice() {
        assert_eq!(from_html("&lt;p&gt;a &amp;amp; b&lt;/p&gt;"), "a & b");
    }

    #[test]
    fn fallback_for_quotes_is_left_out() {
        let html = r#"<p class="quote-inline">RE: <a href="https://far.example/@bo/1">far.example</a></p><p>Finished.</p>"#;
        assert_eq!(from_html(html), "Finished.");
        assert_eq!(
            from_html("<p class='a quote-inline'>RE: x</p>My <i class='quote'>own</i>"),
            "My own"
        );
        assert_eq!(from_html("<p class=quote-inline>RE: x"), "");
    }

    #[test]
    fn code_samples_keep_their_markup() {
        for (html, text) in [
            ("Write <code>&lt;br&gt;</code> here", "Write <br> here"),
            (
                "<p>Put <code>&lt;li&gt;</code> inside <code>&lt;/ul&gt;</code></p>",
                "Put <li> inside </ul>",
            ),
            ("a<br>b <code>&lt;br/&gt;</code>", "a\nb <br/>"),
            ("&lt;br&gt;a&lt;br&gt;b", "a\nb"),
        ] {
            assert_eq!(from_html(html), text, "{html}");
        }
    }

    #[test]
    fn nesting_costs_neither_stack_nor_time() {
        // Quadratic time would exceed the test runner's limit, which is minutes.
        for tag in ["div", "b", "p", "a", "pre", "svg", "blockquote"] {
            let deep = format!("<{tag}>").repeat(200_000);
            let _ = from_html(&deep);
        }
        let _ = from_html(&"&amp;".repeat(200_000));
        let _ = from_html(&"<".repeat(1_000_000));
    }
}
