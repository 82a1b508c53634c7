//! Builds a [`Document`] from markup.
//!
//! Elements are known by their names alone, wherever they stand: items outside their channel and documents without an
//! end are read. What an element does not say is left out, and never refuses the entry, nor the feed.

use domain::{Timestamp, web_url::has_long_host};
use url::Url;

use super::{
    date::date,
    document::{Document, Entry, Link, Markup, Rel},
    names::{Field, Namespace, Role, role},
    person::person,
    syntax::{Sink, Tag},
};

/// The most entries that are read; the first ones are usually the newest.
pub(super) const MAX_ENTRIES: usize = 2_000;
/// Deeper elements are not told apart. Text constructs may nest as they like.
const MAX_DEPTH: usize = 128;
const MAX_ADDRESS_BYTES: usize = 2_048;
pub(super) const MAX_AUTHORS: usize = 8;
const MAX_BINDINGS: usize = 64;
/// The longest text that is kept of an element; [`crate::text`] reads no more.
const MAX_TEXT_BYTES: usize = 512 * 1024;
/// The longest text of an element that is no text construct.
const MAX_LINE_BYTES: usize = 8 * 1024;

pub(super) struct Builder {
    document: Document,
    /// Some element said that this is a feed.
    is_feed: bool,
    /// The first element.
    root: Option<String>,
    is_atom: bool,
    open: Vec<Frame>,
    bindings: Vec<Binding>,
    url: Url,
    entry: Option<Entry>,
    times: Times,
    other_title: Option<Markup>,
    other_summary: Option<Markup>,
    person: Option<OpenPerson>,
    capture: Option<Capture>,
    /// Number of open elements whose content is ignored.
    skipped: usize,
}

struct Frame {
    name: String,
    role: Role,
    base: Option<Url>,
}

struct Binding {
    depth: usize,
    prefix: String,
    namespace: Namespace,
}

/// Dates of the open entry.
#[derive(Default)]
struct Times {
    published: Option<Timestamp>,
    created: Option<Timestamp>,
    updated: Option<Timestamp>,
}

#[derive(Default)]
struct OpenPerson {
    text: String,
    name: Option<String>,
    uri: Option<String>,
}

/// An element whose text is being read.
struct Capture {
    target: Target,
    name: String,
    text: String,
    form: Form,
    /// Open elements of the same name inside.
    depth: usize,
    rel: Rel,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Field(Field),
    PersonName,
    PersonUri,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    /// HTML as text.
    Html,
    /// Plain text, or HTML as text.
    Either,
    /// HTML as elements: text is not markup.
    Xhtml,
    Base64,
    /// A type that is no text, whose bytes may be text.
    Unknown,
}

/// Reads a document; `None` if it is not a feed.
pub(super) fn build(document: &str, url: &Url) -> Option<Document> {
    let mut builder = Builder::new(url);
    super::syntax::read(document, &mut builder);
    builder.finish()
}

impl Builder {
    fn new(url: &Url) -> Self {
        Self {
            document: Document::default(),
            is_feed: false,
            root: None,
            is_atom: false,
            open: Vec::new(),
            bindings: Vec::new(),
            url: url.clone(),
            entry: None,
            times: Times::default(),
            other_title: None,
            other_summary: None,
            person: None,
            capture: None,
            skipped: 0,
        }
    }

    fn finish(mut self) -> Option<Document> {
        let is_root = |frame: &Frame| matches!(frame.role, Role::Root | Role::Entry);
        self.document.is_cut = self.open.iter().any(is_root);
        self.end_capture();
        self.end_person();
        self.end_entry();
        self.is_feed.then_some(self.document)
    }

    fn namespace<'a>(&self, name: &'a str) -> (Namespace, &'a str) {
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        let binding = self
            .bindings
            .iter()
            .rev()
            .find(|binding| binding.prefix == prefix);
        let namespace = match binding {
            Some(binding) => binding.namespace,
            None if prefix.is_empty() => Namespace::Feed,
            None => Namespace::of_prefix(prefix),
        };
        (namespace, local)
    }

    fn bind(&mut self, tag: &Tag) {
        let depth = self.open.len() + 1;
        let local = tag.name.rsplit(':').next().unwrap_or(&tag.name);
        let is_container = ["rss", "feed", "rdf", "channel", "item", "entry"].contains(&local);
        for (name, value) in tag.all() {
            let prefix = match name.strip_prefix("xmlns") {
                Some("") => "",
                Some(rest) => match rest.strip_prefix(':') {
                    Some(prefix) => prefix,
                    None => continue,
                },
                None => continue,
            };
            if self.bindings.len() < MAX_BINDINGS {
                // A feed that declares some namespace for all it holds is a feed none the less, and some declare a
                // wrong address for a prefix that everyone knows.
                let namespace = match Namespace::of_uri(value) {
                    _ if prefix.is_empty() && is_container => Namespace::Feed,
                    Namespace::Other => Namespace::of_prefix(prefix),
                    namespace => namespace,
                };
                self.bindings.push(Binding {
                    depth,
                    prefix: prefix.to_owned(),
                    namespace,
                });
            }
        }
    }

    fn is_in(&self, role: Role) -> bool {
        self.open.last().is_some_and(|frame| frame.role == role)
    }

    /// Ends an author that was not closed before the next field.
    fn end_open_person(&mut self) {
        let is_person = |frame: &Frame| frame.role == Role::Person;
        if self.person.is_some()
            && let Some(place) = self.open.iter().position(is_person)
        {
            self.pop_to(place);
        }
    }

    fn base(&self) -> &Url {
        let own = self.open.iter().rev().find_map(|frame| frame.base.as_ref());
        own.unwrap_or(&self.url)
    }

    fn push(&mut self, tag: &Tag, role: Role) {
        if self.open.len() >= MAX_DEPTH {
            return;
        }
        let base = tag.get("xml:base").filter(|base| !base.trim().is_empty());
        let base = base.and_then(|base| self.base().join(base.trim()).ok());
        let base = base.filter(is_address);
        self.skipped += usize::from(role == Role::Skipped);
        self.open.push(Frame {
            name: tag.name.clone(),
            role,
            base,
        });
    }

    /// Ends the element at this place of the stack and all that are open in it.
    fn pop_to(&mut self, place: usize) {
        while self.open.len() > place {
            let Some(frame) = self.open.pop() else { return };
            match frame.role {
                Role::Entry => self.end_entry(),
                Role::Person => self.end_person(),
                Role::Skipped => self.skipped = self.skipped.saturating_sub(1),
                _ => {}
            }
        }
        let depth = self.open.len();
        self.bindings.retain(|binding| binding.depth <= depth);
    }

    fn begin_entry(&mut self, tag: &Tag) {
        // An entry ends where the next one begins, and is in no image.
        if let Some(place) = self
            .open
            .iter()
            .position(|frame| matches!(frame.role, Role::Entry | Role::Skipped))
        {
            self.pop_to(place);
        }
        self.end_entry();
        self.push(tag, Role::Entry);
        // RSS 1.0, and CDF.
        let about = tag.get("rdf:about").map(str::trim);
        let entry = Entry {
            id: about.filter(|id| !id.is_empty()).map(str::to_owned),
            ..Entry::default()
        };
        self.times.updated = tag.get("lastmod").and_then(date);
        self.entry = Some(entry);
        if let Some(about) = about {
            self.add_link(about, Rel::Id);
        }
        if let Some(address) = tag.get("href") {
            self.add_link(address, Rel::Alternate);
        }
    }

    fn end_entry(&mut self) {
        let Some(mut entry) = self.entry.take() else {
            return;
        };
        let times = std::mem::take(&mut self.times);
        entry.published = times.published.or(times.created);
        entry.updated = times.updated;
        let (title, summary) = (self.other_title.take(), self.other_summary.take());
        entry.title = entry.title.or(title);
        entry.others.extend(summary);
        if entry.is_empty() {
            return;
        }
        if self.document.entries.len() < MAX_ENTRIES {
            self.document.entries.push(entry);
        } else {
            self.document.surplus += 1;
        }
    }

    fn end_person(&mut self) {
        let Some(open) = self.person.take() else {
            return;
        };
        let found = match open.name {
            Some(name) => person(&name, open.uri),
            None => person(&open.text, open.uri),
        };
        let authors = match &mut self.entry {
            Some(entry) => &mut entry.authors,
            None => &mut self.document.authors,
        };
        if authors.len() < MAX_AUTHORS {
            authors.extend(found);
        }
    }

    fn add_link(&mut self, address: &str, rel: Rel) {
        let address = address.trim();
        if address.is_empty() || address.len() > MAX_LINE_BYTES || has_long_host(address) {
            return;
        }
        let links = match &self.entry {
            Some(entry) => &entry.links,
            None => &self.document.links,
        };
        // Only the first one of its kind is used, and a base of an element makes each as long as itself.
        if links.iter().any(|link| link.rel == rel) {
            return;
        }
        let url = match rel {
            // An id is an address only if it is a whole one.
            Rel::Id => Url::parse(address),
            _ => self.base().join(address),
        };
        let links = match &mut self.entry {
            Some(entry) => &mut entry.links,
            None => &mut self.document.links,
        };
        let url = url.ok().filter(is_address);
        links.extend(url.map(|url| Link { url, rel }));
    }

    fn form(&self, tag: &Tag, field: Field, namespace: Namespace) -> Form {
        if !matches!(field, Field::Title | Field::Summary | Field::Content) {
            return match field {
                Field::OtherTitle | Field::OtherSummary if namespace != Namespace::Media => {
                    Form::Either
                }
                Field::OtherSummary
                    if tag.get("type").is_some_and(|kind| kind.contains("html")) =>
                {
                    Form::Html
                }
                _ => Form::Plain,
            };
        }
        if namespace == Namespace::Xhtml {
            return Form::Xhtml;
        }
        let kind = tag.get("type").map(|kind| kind.trim().to_ascii_lowercase());
        let mode = tag.get("mode").map(|mode| mode.trim().to_ascii_lowercase());
        let kind = kind
            .as_deref()
            .map(|kind| kind.split(';').next().unwrap_or_default().trim_end());
        if mode.as_deref() == Some("base64") {
            return Form::Base64;
        }
        if !self.is_atom || namespace == Namespace::Content {
            return match kind {
                Some("xhtml" | "application/xhtml+xml") => Form::Xhtml,
                _ => Form::Either,
            };
        }
        match kind {
            None | Some("" | "text" | "text/plain" | "plain") => Form::Plain,
            Some("xhtml" | "application/xhtml+xml") if mode.as_deref() == Some("escaped") => {
                Form::Html
            }
            Some("xhtml" | "application/xhtml+xml") => Form::Xhtml,
            Some("html" | "text/html") => Form::Html,
            Some(kind) if kind.starts_with("text/") || kind.ends_with("xml") => Form::Html,
            Some(kind) if kind.contains('/') => Form::Unknown,
            Some(_) => Form::Html,
        }
    }

    fn begin_capture(&mut self, target: Target, tag: &Tag, form: Form, rel: Rel, is_empty: bool) {
        if is_empty {
            return;
        }
        self.capture = Some(Capture {
            target,
            name: tag.name.clone(),
            text: String::new(),
            form,
            depth: 0,
            rel,
        });
    }

    fn end_capture(&mut self) {
        let Some(capture) = self.capture.take() else {
            return;
        };
        let text = capture.text.trim();
        if text.is_empty() {
            return;
        }
        let field = match capture.target {
            Target::PersonName | Target::PersonUri => {
                if let Some(person) = &mut self.person {
                    let place = if capture.target == Target::PersonName {
                        &mut person.name
                    } else {
                        &mut person.uri
                    };
                    place.get_or_insert_with(|| text.to_owned());
                }
                return;
            }
            Target::Field(field) => field,
        };
        let is_of_entry = self.entry.is_some();
        match field {
            Field::Link => return self.add_link(text, capture.rel),
            Field::Id => {
                if capture.rel == Rel::Id {
                    self.add_link(text, Rel::Id);
                }
                if let Some(entry) = &mut self.entry {
                    entry.id = Some(text.to_owned());
                }
                return;
            }
            Field::Published | Field::Created | Field::Updated if !is_of_entry => {}
            Field::Published if self.times.published.is_some() => {}
            Field::Created if self.times.created.is_some() => {}
            Field::Published => self.times.published = date(text),
            Field::Created => self.times.created = date(text),
            // Of several, the last is the latest change.
            Field::Updated => self.times.updated = date(text).or(self.times.updated),
            Field::Ttl => self.document.ttl = self.document.ttl.or(text.parse().ok()),
            Field::Language => set(&mut self.document.language, Some(text.to_owned())),
            Field::Title
            | Field::OtherTitle
            | Field::Summary
            | Field::OtherSummary
            | Field::Content => {}
        }
        let Some(markup) = capture.markup() else {
            return;
        };
        let place = match (&mut self.entry, field) {
            (Some(entry), Field::Title) => &mut entry.title,
            (Some(entry), Field::Summary) => &mut entry.summary,
            (Some(entry), Field::Content) => &mut entry.content,
            (Some(_), Field::OtherTitle) => &mut self.other_title,
            (Some(_), Field::OtherSummary) => &mut self.other_summary,
            (None, Field::Title | Field::OtherTitle) => &mut self.document.title,
            (None, Field::Summary | Field::OtherSummary) => &mut self.document.description,
            _ => return,
        };
        set(place, Some(markup));
    }
}

/// Returns the kind of address that a link or an id has; `None` for links to other things, such as enclosures.
fn rel(tag: &Tag, field: Field) -> Option<Rel> {
    let attribute = |name| tag.get(name).map(|value| value.trim().to_ascii_lowercase());
    if field == Field::Id {
        let is_link = attribute("ispermalink").as_deref() != Some("false");
        return Some(if is_link { Rel::Id } else { Rel::Itself });
    }
    match attribute("rel").as_deref() {
        None | Some("" | "alternate") => Some(Rel::Alternate),
        Some("self") => Some(Rel::Itself),
        Some(_) => None,
    }
}

/// Returns true for a web address that may be kept. Relative bases inside each other make ever longer ones.
pub(super) fn is_address(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.as_str().len() <= MAX_ADDRESS_BYTES
}

/// Sets what is not set yet.
fn set<T>(place: &mut Option<T>, value: Option<T>) {
    if place.is_none() {
        *place = value;
    }
}

impl Capture {
    fn push(&mut self, text: &str) {
        let most = match self.target {
            Target::Field(Field::Title | Field::Summary | Field::OtherSummary | Field::Content) => {
                MAX_TEXT_BYTES
            }
            _ => MAX_LINE_BYTES,
        };
        let room = most.saturating_sub(self.text.len());
        let text = &text[..text.floor_char_boundary(room)];
        if self.form == Form::Xhtml && text.contains(['<', '&']) {
            self.text.push_str(&escaped(text));
        } else {
            self.text.push_str(text);
        }
    }

    /// Writes a tag inside a text construct.
    fn tag(&mut self, tag: &Tag, is_empty: bool) {
        match self.form {
            Form::Xhtml => {}
            Form::Plain | Form::Unknown | Form::Base64 => {
                self.text = escaped(&self.text);
                self.form = Form::Xhtml;
            }
            Form::Html | Form::Either => self.form = Form::Xhtml,
        }
        if self.text.len() >= MAX_TEXT_BYTES {
            return;
        }
        let local = tag.name.rsplit(':').next().unwrap_or(&tag.name);
        self.text.push('<');
        self.text.push_str(local);
        for name in ["href", "class"] {
            if let Some(value) = tag.get(name) {
                let value = escaped(value).replace('"', "&quot;");
                self.text.extend([" ", name, "=\"", &value, "\""]);
            }
        }
        self.text.push_str(if is_empty { "/>" } else { ">" });
    }

    fn markup(self) -> Option<Markup> {
        let text = self.text;
        match self.form {
            Form::Plain => Some(Markup::Plain(text)),
            Form::Either => Some(Markup::Either(text)),
            Form::Html | Form::Xhtml => Some(Markup::Html(text)),
            Form::Base64 => Some(Markup::Html(decoded(&text).unwrap_or(text))),
            Form::Unknown => Some(Markup::Html(
                decoded(&text).or_else(|| is_text(&text).then_some(text))?,
            )),
        }
    }
}

/// Text of base64, if it is text.
fn decoded(text: &str) -> Option<String> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let compact: String = text.split_whitespace().collect();
    String::from_utf8(STANDARD.decode(compact).ok()?).ok()
}

/// Returns true unless it is the base64 of something else.
fn is_text(text: &str) -> bool {
    text.contains(' ') || text.len() < 64
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

impl Sink for Builder {
    fn start(&mut self, tag: &Tag, is_empty: bool) {
        if let Some(capture) = &mut self.capture {
            if capture.form == Form::Xhtml && capture.name == tag.name && !is_empty {
                capture.depth += 1;
            }
            let inside = capture.form == Form::Xhtml && matches!(capture.target, Target::Field(_));
            if inside && capture.depth > 0 || !self.ends_capture(tag) {
                if let Some(capture) = &mut self.capture {
                    capture.tag(tag, is_empty);
                }
                return;
            }
            self.end_capture();
        }
        self.bind(tag);
        let (namespace, local) = self.namespace(&tag.name);
        self.root.get_or_insert_with(|| local.to_owned());
        let mut role = role(namespace, local, self.entry.is_some());
        if self.skipped > 0 && role != Role::Entry {
            role = Role::Ignored;
        }
        match role {
            Role::Root => {
                self.is_feed = true;
                self.is_atom |= local == "feed";
                if let Some(language) = tag
                    .get("xml:lang")
                    .map(str::trim)
                    .filter(|language| !language.is_empty())
                {
                    set(&mut self.document.language, Some(language.to_owned()));
                }
            }
            Role::Entry => {
                self.is_feed |=
                    self.root.as_deref() == Some(local) || self.root.as_deref() != Some("html");
                self.is_atom |= self.root.as_deref() == Some("entry");
                self.begin_entry(tag);
                if is_empty {
                    self.pop_to(self.open.len().saturating_sub(1));
                }
                return;
            }
            Role::Person if self.person.is_none() => self.person = Some(OpenPerson::default()),
            Role::PersonName if self.person.is_some() => {
                self.begin_capture(Target::PersonName, tag, Form::Plain, Rel::Itself, is_empty);
            }
            Role::PersonUri if self.person.is_some() => {
                self.begin_capture(Target::PersonUri, tag, Form::Plain, Rel::Itself, is_empty);
            }
            // An id deeper inside an entry belongs to something that the entry mentions.
            Role::Field(Field::Id) if self.entry.is_some() && !self.is_in(Role::Entry) => {}
            Role::Field(field) => {
                self.end_open_person();
                match (rel(tag, field), tag.get("href")) {
                    (None, _) => {}
                    (Some(rel), Some(address)) if field == Field::Link => {
                        self.add_link(address, rel);
                    }
                    (Some(rel), _) => {
                        let form = self.form(tag, field, namespace);
                        self.begin_capture(Target::Field(field), tag, form, rel, is_empty);
                    }
                }
            }
            _ => {}
        }
        if !is_empty {
            return self.push(tag, role);
        }
        if role == Role::Person {
            self.end_person();
        }
        let depth = self.open.len();
        self.bindings.retain(|binding| binding.depth <= depth);
    }

    fn end(&mut self, name: &str) {
        let encloses = self.encloses(name);
        if let Some(capture) = &mut self.capture {
            if capture.name == name && capture.depth > 0 {
                capture.depth -= 1;
            } else if capture.name == name || encloses {
                self.end_capture();
            }
        }
        if let Some(capture) = &mut self.capture {
            if capture.form == Form::Xhtml && capture.text.len() < MAX_TEXT_BYTES {
                let local = name.rsplit(':').next().unwrap_or(name);
                capture.text.extend(["</", local, ">"]);
            }
            return;
        }
        if let Some(place) = self.open.iter().rposition(|frame| frame.name == name) {
            self.pop_to(place);
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(capture) = &mut self.capture {
            capture.push(text);
        } else if let Some(person) = &mut self.person
            && person.text.len() < MAX_LINE_BYTES
        {
            person
                .text
                .push_str(&text[..text.floor_char_boundary(MAX_LINE_BYTES)]);
        }
    }

    fn open_text(&self) -> Option<&str> {
        self.capture.as_ref().map(|capture| capture.name.as_str())
    }
}

impl Builder {
    /// Returns true if the element cannot be inside the text construct that is open: the construct was not closed.
    fn ends_capture(&self, tag: &Tag) -> bool {
        let Some(capture) = &self.capture else {
            return false;
        };
        let (namespace, local) = self.namespace(&tag.name);
        let role = role(namespace, local, true);
        let is_prefixed = tag.name.contains(':');
        match role {
            Role::Ignored => false,
            Role::Entry => true,
            // No title holds these.
            Role::Field(Field::Id | Field::Published | Field::Updated | Field::Link)
                if capture.target == Target::Field(Field::Title) =>
            {
                true
            }
            _ if capture.form == Form::Xhtml => false,
            _ if namespace == Namespace::Xhtml => false,
            // Names that HTML has too.
            Role::Field(_)
            | Role::Root
            | Role::Skipped
            | Role::Person
            | Role::PersonName
            | Role::PersonUri => {
                let is_html = matches!(
                    local,
                    "title" | "summary" | "link" | "source" | "content" | "body" | "image"
                );
                let holds_html = matches!(
                    capture.target,
                    Target::Field(Field::Summary | Field::Content | Field::OtherSummary)
                );
                is_prefixed || !is_html || !holds_html || local == "link"
            }
        }
    }

    /// Returns true if an open element of the feed has this name.
    fn encloses(&self, name: &str) -> bool {
        let is_known = |frame: &Frame| frame.name == name && !matches!(frame.role, Role::Field(_));
        self.open.iter().any(is_known)
    }
}
