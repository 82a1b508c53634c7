//! Converts HTML to plain text token by token: it builds no tree, so nesting costs nothing.

use std::cell::RefCell;

use html5ever::{
    tendril::StrTendril,
    tokenizer::{
        BufferQueue, StartTag, Tag, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
        states::RawKind,
    },
};

/// Returns the text that a reader sees: blocks on separate lines, entities decoded, scripts and styles removed.
/// Links keep their text; a link text that the site shortened becomes the whole address.
#[must_use]
pub fn from_html(html: &str) -> String {
    let html = super::bounded(html);
    if !html.contains(['<', '&']) {
        return super::block(html);
    }
    let once = read(html);
    // Feeds escape twice: after decoding, element ends are left.
    if !html.contains('<') && once.contains("</") || once.contains("<br") && !html.contains("<br") {
        return super::block(&read(&once));
    }
    super::block(&once)
}

/// Decodes the entities of `text`, and nothing else.
#[must_use]
pub fn decode_entities(text: &str) -> String {
    let text = super::bounded(text);
    if !text.contains('&') {
        return text.to_owned();
    }
    read(&text.replace('<', "&lt;"))
}

fn read(html: &str) -> String {
    let sink = Sink::default();
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.text.into_inner().out
}

#[derive(Default)]
struct Sink {
    text: RefCell<Text>,
}

#[derive(Default)]
struct Text {
    out: String,
    /// The hidden element that the parser is in.
    hidden: Option<String>,
    /// Number of open `pre` elements.
    preformatted: usize,
    /// The open link's address, and the position where its text starts.
    link: Option<(String, usize)>,
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut text = self.text.borrow_mut();
        match token {
            Token::CharacterTokens(run) => text.characters(&run),
            Token::TagToken(tag) if tag.kind == StartTag => return text.open(&tag),
            Token::TagToken(tag) => text.close(&tag),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

impl Text {
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

    fn open(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name = &*tag.name;
        if self.hidden.is_some() {
            return TokenSinkResult::Continue;
        }
        match name {
            "script" | "style" | "noscript" | "iframe" | "noembed" | "noframes" | "template"
            | "svg" | "head"
                if !tag.self_closing =>
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
            "a" => {
                let href = tag.attrs.iter().find(|attr| &*attr.name.local == "href");
                self.link = href.map(|href| (href.value.to_string(), self.out.len()));
            }
            name => self.end_block(lines_around(name)),
        }
        match name {
            "script" => TokenSinkResult::RawData(RawKind::ScriptData),
            "style" | "iframe" | "noembed" | "noframes" => {
                TokenSinkResult::RawData(RawKind::Rawtext)
            }
            "textarea" | "title" => TokenSinkResult::RawData(RawKind::Rcdata),
            _ => TokenSinkResult::Continue,
        }
    }

    fn close(&mut self, tag: &Tag) {
        let name = &*tag.name;
        if let Some(hidden) = &self.hidden {
            if hidden == name {
                self.hidden = None;
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
        let tail = self.out.bytes().rev().take_while(|b| *b == b'\n').count();
        for _ in tail..lines {
            self.out.push('\n');
        }
    }
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
    fn what_nobody_sees_is_left_out() {
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
    fn text_escaped_twice_is_read_twice() {
        assert_eq!(from_html("&lt;p&gt;a &amp;amp; b&lt;/p&gt;"), "a & b");
    }

    #[test]
    fn nesting_costs_neither_stack_nor_time() {
        let started = std::time::Instant::now();
        for tag in ["div", "b", "p", "a", "pre", "svg", "blockquote"] {
            let deep = format!("<{tag}>").repeat(200_000);
            let _ = from_html(&deep);
        }
        let _ = from_html(&"&amp;".repeat(200_000));
        let _ = from_html(&"<".repeat(1_000_000));
        assert!(started.elapsed().as_secs() < 10);
    }
}
