//! Reads the tags of an HTML page and sorts its text by location.
//!
//! Makes one pass over a tokenizer's events with a stack of open elements of bounded depth. Unclosed and crossed tags
//! are repaired as far as regions need it, and less thoroughly than in a browser.

use std::convert::Infallible;

use domain::web_url::{MAX_BYTES, has_long_host};
use html5gum::{
    Span, Tokenizer,
    emitters::callback::{CallbackEmitter, CallbackEvent},
};
use url::Url;

use super::{
    Blocks, Heading, Link, LinkKind, MAX_HEADINGS, MAX_LINE_BYTES, MAX_LINKS, MAX_SMALL_PRINT,
    MAX_SMALL_PRINT_BYTES, MAX_TEXT_BYTES, PageText,
    regions::{self, Region},
    state, structured, tidy,
};

/// Maximum depth; deeper elements count as part of their ancestor.
const MAX_DEPTH: usize = 256;
/// Minimum main text, in bytes; with less, boilerplate regions count too.
const MIN_MAIN_BYTES: usize = 80;
/// Maximum size of all scripts that are read for the page's data; a longer one is not read.
const MAX_SCRIPT_BYTES: usize = 1 << 20;
/// Maximum number of attributes that are read per element.
const MAX_ATTRIBUTES: usize = 64;

pub(super) fn extract(url: &Url, text: &str) -> PageText {
    let mut walk = Walk::new(url);
    tokenize(text, true, &mut walk);
    walk.finish()
}

/// Reads markup into `walk`. If `is_page`, the content of scripts, styles and `noscript` is one text.
fn tokenize(markup: &str, is_page: bool, walk: &mut Walk) {
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| {
        walk.event(&event, is_page);
        None::<Infallible>
    });
    emitter.naively_switch_states(is_page);
    match Tokenizer::new_with_emitter(markup, emitter).finish() {
        Ok(()) => {}
        Err(never) => match never {},
    }
}

/// Returns the primary subtag of a language tag: `en` for `en-GB`.
pub(super) fn primary_language(tag: &str) -> String {
    tag.split(['-', '_'])
        .next()
        .filter(|t| t.len() <= 3 && t.bytes().all(|b| b.is_ascii_alphabetic()))
        .unwrap_or_default()
        .to_ascii_lowercase()
}

struct Open {
    tag: Vec<u8>,
    region: Region,
}

#[derive(Default)]
struct Tag {
    name: Vec<u8>,
    attributes: Vec<(Vec<u8>, String)>,
}

impl Tag {
    fn has(&self, name: &[u8]) -> bool {
        self.attributes.iter().any(|(key, _)| key == name)
    }

    fn attribute(&self, name: &[u8]) -> &str {
        self.attributes
            .iter()
            .find(|(key, _)| key == name)
            .map_or("", |(_, value)| value)
    }
}

struct Anchor {
    href: String,
    text: String,
    in_main: bool,
}

/// Target of running text until its element ends.
#[derive(PartialEq, Eq, Clone, Copy)]
enum Place {
    Title,
    JsonLd,
    Script,
    Heading(u8),
    Block,
}

struct Walk {
    base: Url,
    has_base: bool,
    page: PageText,
    open: Vec<Open>,
    /// Number of open elements beyond `MAX_DEPTH`.
    beyond: usize,
    tag: Tag,
    place: Place,
    title: String,
    json_ld: String,
    script: String,
    /// Scripts that may hold the page's data, and their total size.
    scripts: Vec<String>,
    script_bytes: usize,
    heading: String,
    block: String,
    /// Text of the footer since its last block began.
    small_print: String,
    small_print_bytes: usize,
    /// True if the current block is in a boilerplate region.
    block_is_boilerplate: bool,
    blocks: Blocks,
    boilerplate: Blocks,
    anchor: Option<Anchor>,
    /// Level of an enclosing heading such as `What customers say`.
    muted: Option<u8>,
    seam: Seam,
}

/// Boundary between the previous text and the current position.
#[derive(PartialEq, Eq, Clone, Copy)]
enum Seam {
    /// Nothing that ends a word. `single` is true if the previous text was a single character.
    Open { single: bool },
    /// The end of an element whose words are separate from those outside.
    Ended { single: bool },
    /// The end of such an element, and the start of another one.
    Apart { single: bool },
}

impl Seam {
    const fn single(self) -> bool {
        let (Self::Open { single } | Self::Ended { single } | Self::Apart { single }) = self;
        single
    }
}

impl Walk {
    fn new(url: &Url) -> Self {
        Self {
            base: url.clone(),
            has_base: false,
            page: PageText::default(),
            open: Vec::new(),
            beyond: 0,
            tag: Tag::default(),
            place: Place::Block,
            title: String::new(),
            json_ld: String::new(),
            script: String::new(),
            scripts: Vec::new(),
            script_bytes: 0,
            heading: String::new(),
            block: String::new(),
            small_print: String::new(),
            small_print_bytes: 0,
            block_is_boilerplate: false,
            blocks: Blocks::default(),
            boilerplate: Blocks::default(),
            anchor: None,
            muted: None,
            seam: Seam::Open { single: false },
        }
    }

    fn event(&mut self, event: &CallbackEvent<'_>, is_page: bool) {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag.name = name.to_vec();
                self.tag.attributes.clear();
            }
            CallbackEvent::AttributeName { name } => {
                if self.tag.attributes.len() < MAX_ATTRIBUTES {
                    self.tag.attributes.push((name.to_vec(), String::new()));
                }
            }
            CallbackEvent::AttributeValue { value } => {
                if self.tag.attributes.len() < MAX_ATTRIBUTES
                    && let Some((_, slot)) = self.tag.attributes.last_mut()
                {
                    *slot = lossy(&value[..value.len().min(4096)]);
                }
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                let tag = std::mem::take(&mut self.tag);
                self.start(&tag, *self_closing);
            }
            CallbackEvent::EndTag { name } => {
                self.tag.attributes.clear();
                self.end(name);
            }
            CallbackEvent::String { value } if is_page && self.is_in(b"noscript") => {
                tokenize(&lossy(value), false, self);
            }
            CallbackEvent::String { value } => self.text(&lossy(value)),
            CallbackEvent::Comment { .. }
            | CallbackEvent::Doctype { .. }
            | CallbackEvent::Error(_) => {}
        }
    }

    fn is_in(&self, tag: &[u8]) -> bool {
        self.open.last().is_some_and(|open| open.tag == tag)
    }

    fn start(&mut self, tag: &Tag, self_closing: bool) {
        let name = tag.name.as_slice();
        match name {
            b"html" => self.page.lang = primary_language(tag.attribute(b"lang")),
            // Only the first one counts, as in a browser.
            b"base" if !self.has_base && tag.has(b"href") => {
                self.has_base = true;
                let base = self.base.join(tag.attribute(b"href")).ok();
                // Each link copies it.
                if let Some(base) = base.filter(|base| base.as_str().len() <= MAX_BYTES) {
                    self.base = base;
                }
            }
            b"meta" => self.meta(tag),
            b"link" => self.link(tag),
            b"br" | b"hr" => self.text(" "),
            _ => {}
        }
        self.open_seam(name);
        if regions::is_void(name) || (self_closing && is_foreign(&self.open)) {
            return;
        }
        if regions::is_block(name) {
            self.flush_block();
            self.close_implied(name);
        }
        let region = self.region(tag);
        match name {
            b"title" if self.title.is_empty() && !is_foreign(&self.open) => {
                self.place = Place::Title;
            }
            b"script"
                if tag
                    .attribute(b"type")
                    .eq_ignore_ascii_case("application/ld+json") =>
            {
                self.place = Place::JsonLd;
                self.json_ld.clear();
            }
            b"script" if self.place == Place::Block => {
                self.place = Place::Script;
                self.script.clear();
            }
            b"h1" => self.open_heading(1),
            b"h2" => self.open_heading(2),
            b"h3" => self.open_heading(3),
            b"a" => self.open_anchor(tag.attribute(b"href")),
            _ => {}
        }
        self.page.needs_scripts |=
            name == b"app-root" || regions::is_script_root(tag.attribute(b"id"));
        if self.open.len() < MAX_DEPTH {
            self.open.push(Open {
                tag: tag.name.clone(),
                region,
            });
        } else {
            self.beyond += 1;
        }
        self.block_is_boilerplate = self.standing() == Region::Boilerplate;
    }

    fn end(&mut self, name: &[u8]) {
        if regions::holds_words(name) {
            let single = self.seam.single();
            self.seam = match self.seam {
                Seam::Open { .. } => Seam::Ended { single },
                seam => seam,
            };
        }
        match name {
            b"title" if self.place == Place::Title => self.place = Place::Block,
            b"script" if self.place == Place::JsonLd => {
                self.place = Place::Block;
                structured::read_json_ld(&std::mem::take(&mut self.json_ld), &mut self.page);
            }
            b"script" if self.place == Place::Script => {
                self.place = Place::Block;
                self.keep_script();
            }
            b"h1" | b"h2" | b"h3" => self.close_heading(),
            b"a" => self.close_anchor(),
            _ => {}
        }
        if regions::is_block(name) {
            self.flush_block();
        }
        if self.beyond > 0 {
            self.beyond -= 1;
        } else if let Some(at) = self.open.iter().rposition(|open| open.tag == name) {
            self.open.truncate(at);
        }
        self.block_is_boilerplate = self.standing() == Region::Boilerplate;
    }

    /// Separates the words of two elements without a space between them: `<span>Fast</span><span>Secure</span>`.
    /// Emphasis does not end a word: `<b>E</b>arshot`.
    fn open_seam(&mut self, name: &[u8]) {
        if regions::holds_words(name) {
            let single = self.seam.single();
            let is_void = regions::is_void(name);
            self.seam = match self.seam {
                Seam::Open { .. } if !is_void => Seam::Open { single },
                _ => Seam::Apart { single },
            };
        }
    }

    /// Closes the boundary before a text; returns `true` if a space is needed.
    fn close_seam(&mut self, text: &str) -> bool {
        let single = text.trim().chars().nth(1).is_none();
        let seam = std::mem::replace(&mut self.seam, Seam::Open { single });
        // Single letters in separate elements are one word that a script animates.
        matches!(seam, Seam::Apart { single: before } if !(before && single))
    }

    fn text(&mut self, text: &str) {
        let asks_for_scripts = || text.to_ascii_lowercase().contains("javascript");
        if self.open.iter().any(|open| open.tag == b"noscript") && asks_for_scripts() {
            self.page.needs_scripts = true;
            return;
        }
        let is_shown = match self.place {
            Place::Heading(_) => true,
            Place::Block => self.anchor.is_some() || self.standing() != Region::Never,
            Place::Title | Place::JsonLd | Place::Script => false,
        };
        if is_shown && !text.is_empty() && self.close_seam(text) {
            self.append(" ");
        }
        self.append(text);
    }

    fn append(&mut self, text: &str) {
        let append = |into: &mut String, max_bytes: usize| {
            if into.len() + text.len() <= max_bytes {
                into.push_str(text);
            }
        };
        match self.place {
            Place::Title => return append(&mut self.title, 4 * MAX_LINE_BYTES),
            Place::JsonLd => return append(&mut self.json_ld, MAX_TEXT_BYTES),
            Place::Script => return append(&mut self.script, MAX_SCRIPT_BYTES),
            Place::Heading(_) => append(&mut self.heading, 4 * MAX_LINE_BYTES),
            Place::Block if self.standing() != Region::Never => {
                append(&mut self.block, MAX_TEXT_BYTES);
            }
            Place::Block => {
                if self.is_small_print() {
                    append(&mut self.small_print, MAX_LINE_BYTES);
                }
            }
        }
        if let Some(anchor) = &mut self.anchor {
            append(&mut anchor.text, MAX_LINE_BYTES);
        }
    }

    fn meta(&mut self, tag: &Tag) {
        let key = match tag.attribute(b"property") {
            "" => tag.attribute(b"name").to_ascii_lowercase(),
            property => property.to_ascii_lowercase(),
        };
        let page = &mut self.page;
        let slot = match key.as_str() {
            "description" => &mut page.description,
            "og:title" => &mut page.og_title,
            "og:description" => &mut page.og_description,
            "og:site_name" => &mut page.site_name,
            "application-name" if page.site_name.is_empty() => &mut page.site_name,
            _ => return,
        };
        // Some builders escape twice.
        let text = tag.attribute(b"content").replace("&amp;", "&");
        let text = tidy(&text, MAX_LINE_BYTES);
        if !text.is_empty() {
            *slot = text;
        }
    }

    fn link(&mut self, tag: &Tag) {
        let rel = tag.attribute(b"rel").to_ascii_lowercase();
        let media_type = tag.attribute(b"type").to_ascii_lowercase();
        let is_feed = matches!(
            media_type.as_str(),
            "application/rss+xml" | "application/atom+xml" | "application/feed+json"
        );
        if is_feed && rel.split_whitespace().any(|r| r == "alternate") {
            let text = tidy(tag.attribute(b"title"), MAX_LINE_BYTES);
            self.push_link(tag.attribute(b"href"), text, LinkKind::Feed);
        }
    }

    fn push_link(&mut self, href: &str, text: String, kind: LinkKind) {
        if self.page.links.len() >= MAX_LINKS || href.is_empty() || has_long_host(href) {
            return;
        }
        if let Ok(url) = self.base.join(href)
            && matches!(url.scheme(), "http" | "https")
            && url.as_str().len() <= MAX_BYTES
        {
            let href = url.into();
            self.page.links.push(Link { href, text, kind });
        }
    }

    fn open_heading(&mut self, level: u8) {
        self.close_heading();
        if !matches!(self.standing_of(true), Region::Never | Region::Boilerplate) {
            self.place = Place::Heading(level);
        }
    }

    fn close_heading(&mut self) {
        let Place::Heading(level) = self.place else {
            return;
        };
        self.place = Place::Block;
        let text = tidy(&std::mem::take(&mut self.heading), MAX_LINE_BYTES);
        if self.muted.is_some_and(|muted| level <= muted) {
            self.muted = None;
        }
        if regions::is_boilerplate_heading(&text) {
            self.muted = self.muted.or(Some(level));
        } else if self.muted.is_none()
            && !text.is_empty()
            && self.page.headings.len() < MAX_HEADINGS
        {
            self.page.headings.push(Heading { level, text });
        }
    }

    fn open_anchor(&mut self, href: &str) {
        self.close_anchor();
        self.anchor = Some(Anchor {
            href: href.to_owned(),
            text: String::new(),
            in_main: !matches!(self.standing(), Region::Never | Region::Boilerplate),
        });
    }

    fn close_anchor(&mut self) {
        if let Some(Anchor {
            href,
            text,
            in_main,
        }) = self.anchor.take()
        {
            let text = tidy(&text, MAX_LINE_BYTES);
            self.push_link(&href, text, LinkKind::Anchor { in_main });
        }
    }

    /// Returns whether the current text is in a footer, which is never about the subject.
    fn is_small_print(&self) -> bool {
        let is_of = |names: &[&[u8]]| self.open.iter().any(|o| names.contains(&o.tag.as_slice()));
        is_of(&[b"footer"])
            && !is_of(&[
                b"nav",
                b"script",
                b"style",
                b"template",
                b"noscript",
                b"svg",
            ])
    }

    fn flush_small_print(&mut self) {
        let line = tidy(&std::mem::take(&mut self.small_print), MAX_LINE_BYTES);
        let bytes = self.small_print_bytes + line.len();
        if !line.is_empty()
            && bytes <= MAX_SMALL_PRINT_BYTES
            && self.page.small_print.len() < MAX_SMALL_PRINT
        {
            self.small_print_bytes = bytes;
            self.page.small_print.push(line);
        }
    }

    fn flush_block(&mut self) {
        self.flush_small_print();
        let text = tidy(&std::mem::take(&mut self.block), MAX_TEXT_BYTES);
        if text.is_empty() || self.muted.is_some() {
            return;
        }
        let heading = self.page.headings.len().checked_sub(1);
        if self.block_is_boilerplate {
            self.boilerplate.push(text, heading);
        } else {
            self.blocks.push(text, heading);
        }
    }

    /// Closes a paragraph where a block begins, and a list item where the next one begins.
    fn close_implied(&mut self, name: &[u8]) {
        if let Some(last) = self.open.last() {
            let tag = last.tag.as_slice();
            if tag == b"p" || (tag == name && matches!(tag, b"li" | b"dt" | b"dd" | b"td" | b"tr"))
            {
                self.open.pop();
            }
        }
    }

    fn region(&self, tag: &Tag) -> Region {
        let name = tag.name.as_slice();
        // Browsers show the content of a declarative shadow root (WHATWG HTML, "shadowrootmode").
        let by_tag = match name {
            b"template" if tag.has(b"shadowrootmode") || tag.has(b"shadowroot") => Region::Plain,
            name => regions::by_tag(name),
        };
        // React streams late parts of a page in hidden elements, which a script moves to their places.
        if name == b"div" && tag.has(b"hidden") && tag.attribute(b"id").starts_with("S:") {
            return Region::Plain;
        }
        // Pages of ASP.NET are one form.
        if name == b"form" && tag.attribute(b"action").contains(".aspx") && self.is_in(b"body") {
            return Region::Plain;
        }
        // Wrappers say much about the layout and nothing about the text.
        if matches!(name, b"html" | b"body") || by_tag != Region::Plain {
            return by_tag;
        }
        let mut region = Region::Plain;
        for (key, value) in &tag.attributes {
            match regions::by_attribute(key, value) {
                Region::Plain => {}
                Region::Never => return Region::Never,
                other => region = other,
            }
        }
        region
    }

    /// Returns the region of the open elements: `Never` takes precedence, then the innermost of `Main` and
    /// `Boilerplate`; a banner only accepts paragraphs.
    fn standing(&self) -> Region {
        self.standing_of(false)
    }

    fn standing_of(&self, mut in_paragraph: bool) -> Region {
        let mut standing = Region::Plain;
        for open in self.open.iter().rev() {
            match open.region {
                Region::Never => return Region::Never,
                Region::Banner if standing == Region::Plain && !in_paragraph => {
                    standing = Region::Boilerplate;
                }
                Region::Main | Region::Boilerplate if standing == Region::Plain => {
                    standing = open.region;
                }
                _ => {}
            }
            in_paragraph |= matches!(open.tag.as_slice(), b"p" | b"h1" | b"h2" | b"h3");
        }
        standing
    }

    fn keep_script(&mut self) {
        let script = std::mem::take(&mut self.script);
        let bytes = self.script_bytes + script.len();
        if state::is_data(&script) && bytes <= MAX_SCRIPT_BYTES {
            self.script_bytes = bytes;
            self.scripts.push(script);
        }
    }

    /// Reads the data for scripts, on a page without text.
    fn read_scripts(&mut self) {
        for script in std::mem::take(&mut self.scripts) {
            for text in state::texts(&script) {
                self.open.clear();
                self.beyond = 0;
                self.muted = None;
                self.block_is_boilerplate = false;
                tokenize(&text, false, self);
                self.end_text();
            }
        }
    }

    fn end_text(&mut self) {
        self.close_heading();
        self.close_anchor();
        self.flush_block();
        self.place = Place::Block;
    }

    fn finish(mut self) -> PageText {
        self.end_text();
        if self.blocks.bytes + self.boilerplate.bytes < MIN_MAIN_BYTES {
            self.read_scripts();
        }
        self.page.title = tidy(&self.title, MAX_LINE_BYTES);
        self.page.blocks = self.blocks.blocks;
        let boilerplate = self.boilerplate.blocks.iter().map(|block| &block.text);
        let signed = boilerplate.filter(|text| text.contains('©') && text.len() <= MAX_LINE_BYTES);
        self.page
            .small_print
            .extend(signed.take(MAX_SMALL_PRINT).cloned());
        if self.blocks.bytes < MIN_MAIN_BYTES {
            self.page.blocks.extend(self.boilerplate.blocks);
        }
        self.page
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns whether the position is inside SVG or MathML, where `/>` closes and `<title>` is not the page's.
fn is_foreign(open: &[Open]) -> bool {
    open.iter()
        .any(|o| matches!(o.tag.as_slice(), b"svg" | b"math"))
}
