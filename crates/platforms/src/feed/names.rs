//! Meaning of the names of elements.
//!
//! RSS, Atom and their predecessors name the same things differently, and feeds mix them, with and without
//! namespaces. So an element is known by its namespace's family and its local name, in every format.

/// Content of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Root,
    Entry,
    /// Content that is neither about the feed nor about an entry.
    Skipped,
    Person,
    PersonName,
    PersonUri,
    Ignored,
    Field(Field),
}

/// An element whose text is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Title,
    /// A title in another vocabulary: used if there is no other.
    OtherTitle,
    Summary,
    /// A text in another vocabulary: used if there is no other.
    OtherSummary,
    Content,
    Link,
    Id,
    Published,
    Created,
    Updated,
    Ttl,
    Language,
}

/// A family of vocabularies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Namespace {
    /// RSS, Atom and CDF.
    Feed,
    DublinCore,
    Content,
    Media,
    Itunes,
    Xhtml,
    Other,
}

impl Namespace {
    /// Returns the namespace with this URI.
    pub(super) fn of_uri(uri: &str) -> Self {
        let uri = uri.trim().to_ascii_lowercase();
        let uri = uri
            .trim_start_matches("http://")
            .trim_start_matches("https://");
        let uri = uri.trim_end_matches(['/', '#']);
        match uri {
            ""
            | "www.w3.org/2005/atom"
            | "purl.org/atom/ns"
            | "purl.org/rss/1.0"
            | "my.netscape.com/rdf/simple/0.9"
            | "my.netscape.com/publish/formats/rss-0.91.dtd"
            | "channel.netscape.com/rdf/simple/0.9"
            | "www.w3.org/1999/02/22-rdf-syntax-ns"
            | "www.rssboard.org/rss-specification" => Self::Feed,
            "purl.org/dc/elements/1.1" | "purl.org/dc/elements/1.0" | "purl.org/dc/terms" => {
                Self::DublinCore
            }
            "purl.org/rss/1.0/modules/content" => Self::Content,
            "search.yahoo.com/mrss" | "tools.search.yahoo.com/mrss" => Self::Media,
            "www.itunes.com/dtds/podcast-1.0.dtd" | "example.com/dtds/podcast-1.0.dtd" => {
                Self::Itunes
            }
            "www.w3.org/1999/xhtml" => Self::Xhtml,
            other if other.starts_with("purl.org/net/rss1.1") => Self::Feed,
            other if other.contains("userland.com/rss") => Self::Feed,
            other if other.contains("harvard.edu/tech/rss") => Self::Feed,
            other if other.starts_with("www.w3.org/2005/atom") => Self::Feed,
            _ => Self::Other,
        }
    }

    /// Returns the namespace for which everyone uses this prefix, for documents that do not declare it.
    pub(super) fn of_prefix(prefix: &str) -> Self {
        match prefix {
            "atom" | "atom03" | "atom10" | "rss" | "rdf" => Self::Feed,
            "dc" | "dcterms" | "dct" => Self::DublinCore,
            "content" => Self::Content,
            "media" => Self::Media,
            "itunes" => Self::Itunes,
            "xhtml" => Self::Xhtml,
            _ => Self::Other,
        }
    }
}

/// Returns what the element `local` holds in the feed or in an entry.
pub(super) fn role(namespace: Namespace, local: &str, is_in_entry: bool) -> Role {
    use Field as F;
    let field = match (namespace, local) {
        (Namespace::Feed, "rss" | "feed" | "rdf" | "channel") => return Role::Root,
        (Namespace::Feed, "item" | "entry") => return Role::Entry,
        (
            Namespace::Feed,
            "image" | "textinput" | "source" | "contributor" | "cloud" | "skiphours",
        )
        | (Namespace::Itunes, "owner") => return Role::Skipped,
        (Namespace::Feed, "author" | "managingeditor")
        | (Namespace::DublinCore, "creator" | "author")
        | (Namespace::Itunes, "author") => return Role::Person,
        (Namespace::Feed, "name") => return Role::PersonName,
        (Namespace::Feed, "uri" | "url" | "homepage") => return Role::PersonUri,
        (Namespace::Feed, "title") => F::Title,
        (Namespace::DublinCore, "title") => F::OtherTitle,
        (
            Namespace::Feed,
            "description" | "summary" | "subtitle" | "tagline" | "abstract" | "info",
        ) => F::Summary,
        (Namespace::DublinCore, "description")
        | (Namespace::Media, "description")
        | (Namespace::Itunes, "summary") => F::OtherSummary,
        (Namespace::Feed, "content" | "fullitem" | "body")
        | (Namespace::Content, "encoded")
        | (Namespace::Xhtml, "body" | "div")
            if is_in_entry =>
        {
            F::Content
        }
        (Namespace::Feed, "link") => F::Link,
        (Namespace::Feed, "id" | "guid") => F::Id,
        (Namespace::Feed, "pubdate" | "published" | "issued")
        | (Namespace::DublinCore, "issued") => F::Published,
        (Namespace::Feed | Namespace::DublinCore, "created") => F::Created,
        (Namespace::Feed, "updated" | "modified" | "lastmod")
        | (Namespace::DublinCore, "date" | "modified") => F::Updated,
        (Namespace::Feed, "ttl") => F::Ttl,
        (Namespace::Feed | Namespace::DublinCore, "language") => F::Language,
        _ => return Role::Ignored,
    };
    Role::Field(field)
}
