//! A feed as a document of any format.

use domain::Timestamp;
use url::Url;

/// A feed.
#[derive(Debug, Default)]
pub struct Document {
    pub title: Option<Markup>,
    pub description: Option<Markup>,
    pub language: Option<String>,
    pub(super) links: Vec<Link>,
    pub(super) authors: Vec<Person>,
    /// How many minutes the feed may be kept.
    pub(super) ttl: Option<u32>,
    pub entries: Vec<Entry>,
    /// Entries beyond the most that are read.
    pub(super) surplus: usize,
    /// True if the document breaks off: entries may be missing.
    pub(super) is_cut: bool,
    /// Items that are no objects.
    pub(super) odd: usize,
}

/// An entry of a feed.
#[derive(Debug, Default)]
pub struct Entry {
    /// The entry's id, unchanged.
    pub(super) id: Option<String>,
    pub title: Option<Markup>,
    pub summary: Option<Markup>,
    pub(super) content: Option<Markup>,
    /// Texts that count if there is no other: descriptions of media, and texts in other vocabularies.
    pub(super) others: Vec<Markup>,
    pub(super) published: Option<Timestamp>,
    pub(super) updated: Option<Timestamp>,
    pub(super) links: Vec<Link>,
    pub(super) authors: Vec<Person>,
}

/// A text construct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Markup {
    Plain(String),
    Html(String),
    /// Plain text or HTML: RSS does not say which.
    Either(String),
}

impl Markup {
    pub fn source(&self) -> &str {
        match self {
            Self::Plain(text) | Self::Html(text) | Self::Either(text) => text,
        }
    }
}

/// An address of a feed or an entry.
#[derive(Debug, Clone)]
pub(super) struct Link {
    /// Absolute.
    pub(super) url: Url,
    /// Relation of the address to the feed or the entry.
    pub(super) rel: Rel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rel {
    Alternate,
    /// An id that is an address too.
    Id,
    Itself,
}

/// An author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Person {
    pub(super) name: String,
    pub(super) uri: Option<String>,
}

impl Entry {
    /// When the entry was published, or else changed.
    pub(super) fn time(&self) -> Option<Timestamp> {
        self.published.or(self.updated)
    }

    /// Returns true if there is nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        self.id.is_none() && self.links.is_empty() && self.is_blank()
    }

    /// Returns true if it has no text of any kind.
    pub(super) fn is_blank(&self) -> bool {
        let texts = [&self.title, &self.summary, &self.content];
        self.others.is_empty() && texts.iter().all(|text| text.is_none())
    }
}
