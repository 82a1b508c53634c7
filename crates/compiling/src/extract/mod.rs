//! Extracts the text that describes the subject from the response of a seed URL.
//!
//! Pages are hostile input. The HTML tokenizer streams and builds no tree, so the cost is linear in the size of the
//! page and nesting costs nothing. All stored text has a limit. Nothing on a page is executed or obeyed; it is only
//! read.
//!
//! [`decode`] decodes bytes to text, [`html`] reads the tags, [`structured`] reads JSON-LD, [`state`] reads the data of
//! pages that scripts render, and [`document`] reads other formats: plain text, Markdown, and feeds. [`people`] drops
//! testimonials and staff, and [`walls`] detects pages that only ask for consent or for scripts.

mod decode;
mod document;
mod html;
mod people;
mod regions;
mod state;
mod structured;
mod walls;

use matching::text;
use url::Url;

use crate::language;

/// Maximum size of a page body, in bytes.
pub const MAX_BODY_BYTES: usize = 4 << 20;
/// Maximum size of the stored main text, in bytes.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// Maximum length of a title, description or heading, in bytes.
const MAX_LINE_BYTES: usize = 600;
const MAX_HEADINGS: usize = 200;
const MAX_LINKS: usize = 2_000;
/// Maximum number of footer lines, and their total size in bytes.
const MAX_SMALL_PRINT: usize = 100;
const MAX_SMALL_PRINT_BYTES: usize = 4_000;
/// Minimum number of letters; fewer describe nothing.
const MIN_LETTERS: usize = 12;
/// Titles and short headings of pages that contain nothing but a login form.
const LOGIN: [&str; 10] = [
    "log in",
    "login",
    "sign in",
    "signin",
    "anmelden",
    "einloggen",
    "connexion",
    "iniciar sesión",
    "ログイン",
    "تسجيل الدخول",
];
const MAX_LOGIN_WORDS: usize = 8;
/// A page with more letters is more than a login form.
const MAX_LOGIN_LETTERS: usize = 400;

/// Text of a page, by its location on the page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageText {
    pub title: String,
    /// `og:site_name` or `application-name`.
    pub site_name: String,
    pub description: String,
    pub og_title: String,
    pub og_description: String,
    pub headings: Vec<Heading>,
    /// Paragraphs, list items and cells, without headings and boilerplate.
    pub blocks: Vec<Block>,
    /// Names that JSON-LD gives to organisations and sites.
    pub structured_names: Vec<String>,
    /// Names that JSON-LD gives to products and brands.
    pub structured_products: Vec<String>,
    /// Their descriptions and keywords in JSON-LD.
    pub structured_text: Vec<String>,
    /// Names of people that the page quotes or lists, who are not its subject.
    pub people: Vec<String>,
    /// Lines of the footer, where companies name themselves: `© 2026 Valve Corporation`.
    pub small_print: Vec<String>,
    pub links: Vec<Link>,
    /// Primary language subtag, lower case: `en`. The detected language if it clearly differs from the declared one;
    /// empty if neither is known.
    pub lang: String,
    /// True if the page is itself a feed: RSS, Atom or JSON Feed.
    pub is_feed: bool,
    /// True if scripts render the page: it says that it needs them, or has an empty element for their output.
    pub needs_scripts: bool,
}

impl PageText {
    /// Returns whether the page is little more than a login form.
    fn is_login_wall(&self) -> bool {
        let headings = self.headings.iter().map(|heading| heading.text.as_str());
        let says_so = |line: &str| {
            let words: Vec<String> = text::words(line)
                .map(|word| word.text.into_owned())
                .collect();
            let line = words.join(" ");
            words.len() <= MAX_LOGIN_WORDS && LOGIN.iter().any(|login| line.contains(login))
        };
        self.letters() < MAX_LOGIN_LETTERS
            && headings
                .chain([self.title.as_str(), self.og_title.as_str()])
                .any(says_so)
    }

    /// Returns the language of the text, from the declaration and from the text itself.
    fn language(&self) -> String {
        let blocks = self.blocks.iter().map(|block| block.text.as_str());
        let headings = self.headings.iter().map(|heading| heading.text.as_str());
        let lines = [self.description.as_str(), self.title.as_str()];
        let text: Vec<&str> = lines.into_iter().chain(blocks).chain(headings).collect();
        language::detect(&text.join("\n"), &self.lang)
    }

    fn letters(&self) -> usize {
        let blocks = self.blocks.iter().map(|block| block.text.as_str());
        let headings = self.headings.iter().map(|heading| heading.text.as_str());
        blocks
            .chain(headings)
            .chain([self.title.as_str(), self.description.as_str()])
            .chain([self.og_title.as_str(), self.og_description.as_str()])
            .chain(self.structured_text.iter().map(String::as_str))
            .map(|text| text.chars().filter(|c| c.is_alphabetic()).count())
            .sum()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// Level of the heading, 1 to 3.
    pub level: u8,
    pub text: String,
}

/// A run of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub text: String,
    /// Index of the heading above it.
    pub heading: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Absolute URL, http or https.
    pub href: String,
    pub text: String,
    pub kind: LinkKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    /// An `<a>`; `in_main` is true outside of navigation and footers.
    Anchor { in_main: bool },
    /// `<link rel=alternate>` of a feed's media type.
    Feed,
}

/// Reason why a URL's response has no usable text, worded for the customer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The media type is not text.
    #[error("not a page of text ({0})")]
    MediaType(String),
    /// Binary content, such as an image or an archive, with the media type of a page.
    #[error("not a page of text (binary content)")]
    Binary,
    /// XML or JSON of some other kind.
    #[error("neither a page nor a feed ({0})")]
    NoFeed(String),
    #[error("not text in the declared charset; correct the charset on the server")]
    Charset,
    #[error("a page that asks for a login; give one that is readable without a login")]
    LoginWall,
    #[error(
        "a page that only asks for consent to cookies; give one that is readable without consent"
    )]
    ConsentWall,
    #[error(
        "a page without text in its HTML because scripts render it; give a page with text, or add a title and a description to it"
    )]
    AppShell,
    #[error("{}", if *letters == 0 { "a page without text" } else { "a page with too little text" })]
    TooLittle { letters: usize },
}

/// Reads a page.
///
/// # Errors
/// Returns an error when the bytes contain no text, or too little.
pub fn extract(url: &Url, content_type: Option<&str>, body: &[u8]) -> Result<PageText, Unreadable> {
    let body = &body[..body.len().min(MAX_BODY_BYTES)];
    let media_type = decode::media_type(content_type);
    let text = decode::decode(content_type, body);
    let form = decode::form(&media_type, &text);
    if decode::is_text(&media_type) && decode::is_lost(&text) {
        return Err(Unreadable::Charset);
    }
    // Browsers ignore a NUL, and neither JSON nor the database accepts one.
    let text = if text.contains('\0') {
        text.replace('\0', "")
    } else {
        text
    };
    let mut page = match form {
        decode::Form::Html => html::extract(url, &text),
        decode::Form::Feed => document::feed(url, content_type, body)
            // Some sites serve XHTML as XML.
            .or_else(|| text.contains("<html").then(|| html::extract(url, &text)))
            .ok_or_else(|| Unreadable::NoFeed(shown(&media_type)))?,
        decode::Form::Plain => document::plain(&text),
        decode::Form::Binary if decode::is_text(&media_type) => return Err(Unreadable::Binary),
        decode::Form::Binary => return Err(Unreadable::MediaType(shown(&media_type))),
    };
    if !page.is_feed {
        people::drop_people(&mut page);
        walls::look_behind(&mut page)?;
    }
    page.lang = page.language();
    match page.letters() {
        MIN_LETTERS.. if page.is_login_wall() => Err(Unreadable::LoginWall),
        MIN_LETTERS.. => Ok(page),
        letters => Err(Unreadable::TooLittle { letters }),
    }
}

/// Returns a media type for use in a message.
fn shown(media_type: &str) -> String {
    let shown = media_type.chars().filter(|c| !c.is_control());
    shown.take(100).collect()
}

/// Text blocks with a size limit.
#[derive(Default)]
struct Blocks {
    blocks: Vec<Block>,
    bytes: usize,
}

impl Blocks {
    fn push(&mut self, text: String, heading: Option<usize>) {
        // Each block has a fixed cost, so that a million blocks of one letter are limited too.
        let bytes = text.len() + 16;
        let says_something = text.chars().any(char::is_alphanumeric);
        if says_something && self.bytes + bytes <= MAX_TEXT_BYTES {
            self.bytes += bytes;
            self.blocks.push(Block { text, heading });
        }
    }
}

/// Collapses white space and cuts at a character boundary.
fn tidy(text: &str, max_bytes: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max_bytes));
    for word in text.split_whitespace() {
        if out.len() + word.len() + 1 > max_bytes {
            break;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

#[cfg(test)]
mod tests;
