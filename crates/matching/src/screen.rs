//! A customer's filters that apply to all plans: mutes and languages.
//!
//! They apply after a plan has matched a post. So a mute costs the index nothing, and takes effect or is lifted
//! immediately.

use std::{
    cell::{OnceCell, RefCell},
    collections::HashMap,
};

use domain::{
    Id, Post, Timestamp,
    screen::{Language, Mute, MuteType},
};
use whatlang::Lang;

use crate::{PostText, phrase::Readings, steps};

/// With fewer letters the language cannot be detected reliably.
const MIN_LETTERS: usize = 24;
/// Number of characters used to detect the language; the rest of a post is assumed to be in the same language.
const MAX_CHARS: usize = 1_000;

/// Mutes and languages, compiled.
#[derive(Debug, Default)]
pub struct Screen {
    muted: Vec<Muted>,
    languages: Vec<Language>,
}

/// Reason why a post is filtered out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kept {
    Muted,
    Language,
}

#[derive(Debug)]
struct Muted {
    what: What,
    until: Option<Timestamp>,
}

#[derive(Debug)]
enum What {
    Author(String),
    Subforum(String),
    Site(String),
    Term(Readings),
}

impl Screen {
    /// Returns `None` when nothing is filtered.
    pub fn new(mutes: &[Mute], languages: &[Language]) -> Option<Self> {
        let screen = Self {
            muted: mutes.iter().filter_map(Muted::new).collect(),
            languages: languages.to_vec(),
        };
        let keeps = !screen.muted.is_empty() || !screen.languages.is_empty();
        keeps.then_some(screen)
    }

    /// Returns the reason if the post is filtered out at this time.
    pub fn keeps_out(&self, post: &Candidate<'_>, now: Timestamp) -> Option<Kept> {
        let stands = |muted: &&Muted| muted.until.is_none_or(|end| now < end);
        // All searches of a screen have one budget of steps, as those of a plan in the index have.
        let (is_muted, _) = steps::within(steps::IN_INDEX, || {
            let mut standing = self.muted.iter().filter(stands);
            standing.any(|muted| muted.what.is_of(post))
        });
        if is_muted {
            return Some(Kept::Muted);
        }
        if self.languages.is_empty() {
            return None;
        }
        let language = post.language()?;
        (!self.languages.contains(&language)).then_some(Kept::Language)
    }
}

impl Muted {
    /// Returns `None` for a term without a word, which can never occur.
    fn new(mute: &Mute) -> Option<Self> {
        let value = mute.value.as_str();
        let what = match mute.mute_type {
            MuteType::Author => What::Author(plain(value)),
            MuteType::Subforum => What::Subforum(plain(value)),
            MuteType::Site => What::Site(value.to_lowercase()),
            MuteType::Term => What::Term(Readings::exact(value)?.without_words()),
        };
        Some(Self {
            what,
            until: mute.expire_time,
        })
    }
}

impl What {
    fn is_of(&self, post: &Candidate<'_>) -> bool {
        match self {
            Self::Author(author) => post.names().author.contains(author),
            Self::Subforum(wanted) => post.names().subforum.contains(wanted),
            Self::Site(site) => post.names().site.as_ref().is_some_and(|host| {
                host.strip_suffix(site.as_str())
                    .is_some_and(|below| below.is_empty() || below.ends_with('.'))
            }),
            Self::Term(readings) => {
                let mut phrases = readings.phrases().iter();
                phrases.any(|phrase| post.text.contains(phrase))
            }
        }
    }
}

/// A post that a plan matched.
#[derive(Debug)]
pub struct Candidate<'a> {
    post: &'a Post,
    text: &'a PostText,
    language: OnceCell<Option<Language>>,
    names: OnceCell<Names>,
    /// Why the screens of Namespaces filter the post out.
    of_namespaces: RefCell<HashMap<Id, Option<Kept>>>,
}

/// Names of a post in the form that mutes have.
#[derive(Debug)]
struct Names {
    /// Id, name and address.
    author: Vec<String>,
    subforum: Vec<String>,
    site: Option<String>,
}

impl<'a> Candidate<'a> {
    /// `text` is the post's.
    pub fn new(post: &'a Post, text: &'a PostText) -> Self {
        Self {
            post,
            text,
            language: OnceCell::new(),
            names: OnceCell::new(),
            of_namespaces: RefCell::default(),
        }
    }

    /// Returns the reason if the screen of a Namespace filters the post out. Computed once for all its Managers.
    pub fn kept_out_of(&self, namespace: Id, screen: &Screen, now: Timestamp) -> Option<Kept> {
        let mut known = self.of_namespaces.borrow_mut();
        let kept = known.entry(namespace);
        *kept.or_insert_with(|| screen.keeps_out(self, now))
    }

    fn names(&self) -> &Names {
        self.names.get_or_init(|| {
            let user = &self.post.user;
            let subforum = self.post.subforum.iter();
            Names {
                author: [&user.id, &user.name, &user.url]
                    .map(|name| plain(name))
                    .into(),
                subforum: subforum
                    .flat_map(|forum| [&forum.id, &forum.name, &forum.url])
                    .map(|name| plain(name))
                    .collect(),
                site: host(&self.post.url),
            }
        })
    }

    /// Detects the language once for all callers.
    fn language(&self) -> Option<Language> {
        *self.language.get_or_init(|| language_of(self.text))
    }
}

/// Returns whether a post is in English. If the detector cannot tell Portuguese from Spanish, the language whose cues count
/// decides. A text without any sign counts as English.
pub fn is_english(post: &PostText) -> bool {
    match language_of(post) {
        Some(language) => language.as_str() == "en",
        None => post.language() == crate::Language::English,
    }
}

/// Returns the language of a post, from its beginning; `None` where it cannot be detected.
fn language_of(post: &PostText) -> Option<Language> {
    let source = post.source();
    let end = source.char_indices().nth(MAX_CHARS);
    language(&source[..end.map_or(source.len(), |(at, _)| at)])
}

fn language(text: &str) -> Option<Language> {
    let letters = text.chars().filter(|letter| letter.is_alphabetic());
    // A character of a script without spaces says as much as a few letters.
    let weight: usize = letters
        .map(|letter| if letter >= '\u{2e80}' { 4 } else { 1 })
        .take(MIN_LETTERS)
        .sum();
    if weight < MIN_LETTERS {
        return None;
    }
    let info = whatlang::detect(text)?;
    info.is_reliable().then(|| code(info.lang())).flatten()
}

/// Uses the detector's own codes, which are those of ISO 639-3.
fn code(lang: Lang) -> Option<Language> {
    let code = match lang.code() {
        "afr" => "af",
        "aka" => "ak",
        "amh" => "am",
        "ara" => "ar",
        "aze" => "az",
        "bel" => "be",
        "bul" => "bg",
        "ben" => "bn",
        "cat" => "ca",
        "ces" => "cs",
        "cym" => "cy",
        "dan" => "da",
        "deu" => "de",
        "ell" => "el",
        "eng" => "en",
        "epo" => "eo",
        "spa" => "es",
        "est" => "et",
        "pes" => "fa",
        "fin" => "fi",
        "fra" => "fr",
        "guj" => "gu",
        "heb" => "he",
        "hin" => "hi",
        "hrv" => "hr",
        "hun" => "hu",
        "hye" => "hy",
        "ind" => "id",
        "ita" => "it",
        "jpn" => "ja",
        "jav" => "jv",
        "kat" => "ka",
        "khm" => "km",
        "kan" => "kn",
        "kor" => "ko",
        "lat" => "la",
        "lit" => "lt",
        "lav" => "lv",
        "mkd" => "mk",
        "mal" => "ml",
        "mar" => "mr",
        "mya" => "my",
        "nep" => "ne",
        "nld" => "nl",
        "nob" => "no",
        "ori" => "or",
        "pan" => "pa",
        "pol" => "pl",
        "por" => "pt",
        "ron" => "ro",
        "rus" => "ru",
        "sin" => "si",
        "slk" => "sk",
        "slv" => "sl",
        "sna" => "sn",
        "srp" => "sr",
        "swe" => "sv",
        "tam" => "ta",
        "tel" => "te",
        "tha" => "th",
        "tuk" => "tk",
        "tgl" => "tl",
        "tur" => "tr",
        "ukr" => "uk",
        "urd" => "ur",
        "uzb" => "uz",
        "vie" => "vi",
        "yid" => "yi",
        "cmn" => "zh",
        "zul" => "zu",
        _ => return None,
    };
    code.parse().ok()
}

/// Normalises a person's or place's name for comparison: lower case, without prefixes such as `@`.
fn plain(name: &str) -> String {
    let name = name.trim().to_lowercase();
    let name = name.strip_prefix('/').unwrap_or(&name);
    for mark in ["@", "!", "u/", "r/", "c/"] {
        if let Some(rest) = name.strip_prefix(mark) {
            return rest.to_owned();
        }
    }
    name.trim_end_matches('/').to_owned()
}

/// Returns the host of an address, in lower case.
fn host(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = host.split(':').next()?.trim_end_matches('.');
    (!host.is_empty()).then(|| host.to_lowercase())
}

#[cfg(test)]
mod tests;
