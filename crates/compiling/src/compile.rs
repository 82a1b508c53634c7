//! Compiles fetched pages into instructions.
//!
//! Pure and deterministic: the same pages give the same instructions, byte for byte.

use domain::{
    FeedName, Focus, Instructions, Sensitivity,
    instructions::{MAX_BRIEF_CHARS, MAX_TERMS, Term},
};
use url::Url;

use crate::{
    extract::{PageText, Unreadable},
    feeds::{self, Platform},
    names::Names,
    page::Page,
    terms, topic,
};

/// Response of a seed URL.
#[derive(Debug, Clone)]
pub struct FetchedPage {
    /// The URL after redirects.
    pub url: Url,
    pub content_type: Option<String>,
    pub body: Vec<u8>,
}

/// Result of classifying a seed URL.
pub enum Seed {
    /// A feed on a configured platform: it defines what to watch, and says nothing about the subject.
    Place(FeedName),
    /// A page about the subject, which may also be a feed.
    Subject(Box<Page>, Option<FeedName>),
}

impl Seed {
    /// Returns whether the seed names a feed.
    pub fn names_feed(&self) -> bool {
        matches!(self, Self::Place(_) | Self::Subject(_, Some(_)))
    }

    pub fn read(
        url: &Url,
        content_type: Option<&str>,
        body: &[u8],
        source: &str,
        platforms: &[Platform],
    ) -> Result<Self, Unreadable> {
        if let Some(feed) = feeds::platform_page(url, source, platforms) {
            return Ok(Self::Place(feed));
        }
        let page = Page::read(url, content_type, body)?;
        let feed = if page.text.is_feed {
            feeds::feed_of_page(url, &page.text, source, platforms)
        } else {
            None
        };
        Ok(Self::Subject(Box::new(page), feed))
    }
}

/// Reason why pages gave no instructions; it is about the customer's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CompileFailure {
    /// No page has usable content; only the customer can fix that.
    #[error("no usable content on any url")]
    NoUsableContent,
    /// Feeds to watch, but no subject to search for.
    #[error("the urls only name feeds, and no page describes the subject")]
    OnlyPlatformPages,
}

impl CompileFailure {
    /// Returns the code of `Manager.applyError`.
    pub fn code(self) -> &'static str {
        match self {
            Self::NoUsableContent | Self::OnlyPlatformPages => "no_usable_content",
        }
    }
}

/// Compiles the seed pages.
///
/// `sensitivity` only sets the threshold. `focus_names` are the customer's `focus.names`; `source` is the Manager's.
/// Pages that are places on a configured platform name feeds, and say nothing about the subject.
///
/// # Errors
/// Returns a [`CompileFailure`] when the pages have no usable content.
pub fn compile(
    pages: &[FetchedPage],
    focus: Focus,
    sensitivity: Sensitivity,
    focus_names: &[String],
    source: &str,
    platforms: &[Platform],
) -> Result<Instructions, CompileFailure> {
    let seeds = pages.iter().filter_map(|page| {
        let content_type = page.content_type.as_deref();
        Seed::read(&page.url, content_type, &page.body, source, platforms).ok()
    });
    compile_seeds(seeds, focus, sensitivity, focus_names, source, platforms)
}

/// Works like [`compile`], for pages that have been read.
pub fn compile_seeds(
    seeds: impl IntoIterator<Item = Seed>,
    focus: Focus,
    sensitivity: Sensitivity,
    focus_names: &[String],
    source: &str,
    platforms: &[Platform],
) -> Result<Instructions, CompileFailure> {
    let (mut subjects, mut feeds) = (Vec::new(), Vec::new());
    for seed in seeds {
        match seed {
            Seed::Place(feed) => feeds.push(feed),
            Seed::Subject(page, feed) => {
                subjects.push(*page);
                feeds.extend(feed);
            }
        }
    }
    let names = Names::find(&subjects, focus_names);
    let stems = names.stems();
    let offers = terms::offers::offers(&subjects, &stems);
    let texts: Vec<&PageText> = subjects.iter().map(|page| &page.text).collect();
    let terms = terms::terms(&texts, &stems);
    let sells = terms::sells::sells(&subjects, &stems, &terms, &offers);
    let entries = names.entries(&terms);
    if terms.is_empty() && entries.is_empty() {
        return Err(if feeds.is_empty() {
            CompileFailure::NoUsableContent
        } else {
            CompileFailure::OnlyPlatformPages
        });
    }

    let mut instructions = Instructions {
        feeds: feeds::choose(feeds, source, platforms),
        brief: brief(focus, &names, &terms),
        include: terms,
        offers,
        sells,
        names: entries,
        focus: Some(focus),
        threshold: Some(matching::threshold(focus, sensitivity)),
        ..Instructions::default()
    };
    topic::calibrate(&mut instructions);
    let products = names.products(&instructions.include);
    topic::add_products(&mut instructions, products);
    keep_in_bounds(&mut instructions);
    Ok(instructions)
}

fn brief(focus: Focus, names: &Names, terms: &[Term]) -> String {
    let subject = terms.iter().take(8).map(|term| term.text.as_str());
    let subject = subject.collect::<Vec<_>>().join(", ");
    let watched: Vec<&str> = names
        .watched
        .iter()
        .map(|n| n.spellings[0].as_str())
        .collect();
    let own = names.primary().unwrap_or("the customer");
    let brief = match focus {
        Focus::Sales => format!(
            "Posts whose author wants to choose, buy or hire something that {own} offers: {subject}."
        ),
        Focus::Competitor if watched.is_empty() => {
            format!("Posts that name or compare providers of what {own} offers: {subject}.")
        }
        Focus::Competitor => format!(
            "Posts that name, compare or judge {}, in the field of {own}: {subject}.",
            watched
                .iter()
                .take(20)
                .copied()
                .collect::<Vec<_>>()
                .join(", ")
        ),
        Focus::Crisis => format!(
            "Posts that complain about {own} or report trouble with it. It is known for: {subject}."
        ),
    };
    brief.chars().take(MAX_BRIEF_CHARS).collect()
}

/// Adds a sentence to the `brief`; a long description is cut to make room.
pub fn add_to_brief(instructions: &mut Instructions, sentence: &str) {
    let room = MAX_BRIEF_CHARS.saturating_sub(sentence.chars().count() + 1);
    let mut brief: String = instructions.brief.chars().take(room).collect();
    brief.push(' ');
    brief.extend(sentence.chars().take(MAX_BRIEF_CHARS));
    instructions.brief = brief;
}

/// Every spelling and context word counts as a term; the last names are dropped first.
pub fn keep_in_bounds(instructions: &mut Instructions) {
    let mut count = instructions.include.len();
    let mut kept = Vec::new();
    for name in std::mem::take(&mut instructions.names) {
        count += 1 + name.aliases.len() + name.context.len();
        if count > MAX_TERMS {
            break;
        }
        kept.push(name);
    }
    instructions.names = kept;
}
