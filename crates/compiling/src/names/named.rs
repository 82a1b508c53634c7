//! One name with all its spellings.

use ::domain::instructions::{MAX_TERM_CHARS, NameKind, Term, WatchedName};
use matching::text;

use super::{
    brands,
    spelling::{
        acronym, is_camel_case, is_in_capitals, is_unmistakable, split_camel_case, squeeze,
        with_variants,
    },
};
use crate::background::{self, Usage};

/// Maximum number of entries of one kind.
pub(super) const MAX_NAMES: usize = 60;
const MAX_ALIASES: usize = 8;
const MAX_CONTEXT: usize = 16;

/// All spellings of one name, the best first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    pub spellings: Vec<String>,
    /// Spellings that count only in their own case and near a word of the subject: `PIA`.
    pub doubtful: Vec<String>,
    /// True if the customer gave the name, so its case is deliberate.
    pub is_given: bool,
}

impl Named {
    pub fn new(name: String) -> Self {
        let mut doubtful: Vec<String> = acronym(&name).into_iter().collect();
        let mut spellings = with_variants(name);
        match split_camel_case(&spellings[0]) {
            Some(split) if is_unmistakable(&split) => spellings.push(split),
            split => doubtful.extend(split),
        }
        Self {
            spellings,
            doubtful,
            is_given: false,
        }
    }

    pub(super) fn add_spellings_of_brand(&mut self) {
        let Some(brand) = brands::find(&self.spellings[0]) else {
            return;
        };
        for name in &brand.names {
            if !self.is_spelled(name) {
                self.spellings.push((*name).to_owned());
            }
        }
    }

    /// Returns whether one of its spellings is this name.
    pub(super) fn is_spelled(&self, name: &str) -> bool {
        let name = squeeze(name);
        self.spellings
            .iter()
            .any(|spelling| squeeze(spelling) == name)
    }

    /// Returns whether this name contains one of its spellings.
    pub(super) fn is_part_of(&self, name: &str) -> bool {
        let fold = |name: &str| format!(" {} ", text::fold(name));
        let name = fold(name);
        self.spellings
            .iter()
            .any(|spelling| name.contains(&fold(spelling)))
    }

    pub fn entries(&self, kind: NameKind, terms: &[Term]) -> Vec<WatchedName> {
        let (mut clear, mut cased, mut words) = (Vec::new(), Vec::new(), Vec::new());
        for spelling in &self.spellings {
            if spelling.chars().count() <= MAX_TERM_CHARS {
                let list = match usage(spelling) {
                    Usage::Name if self.is_given && is_in_capitals(spelling) => &mut cased,
                    Usage::Name => &mut clear,
                    Usage::Both => &mut cased,
                    Usage::Word => &mut words,
                };
                list.push(spelling.clone());
            }
        }
        // Matching also finds a word with its mark; both would count twice.
        let unmarked: Vec<String> = clear.iter().map(|s| text::fold(s).into_owned()).collect();
        let clear = clear
            .into_iter()
            .filter(|spelling| match spelling.strip_prefix('@') {
                Some(handle) => !unmarked.contains(&text::fold(handle).into_owned()),
                None => true,
            });
        let clear: Vec<String> = clear.collect();
        words.extend(self.doubtful.iter().cloned());
        let entry = |spellings: Vec<String>, case_sensitive, context| {
            let mut spellings = spellings.into_iter();
            let text = spellings.next()?;
            Some(WatchedName {
                text,
                kind,
                aliases: spellings.take(MAX_ALIASES).collect(),
                case_sensitive,
                context,
                on_topic_percent: None,
                ordinary_posts: None,
            })
        };
        let clear = entry(clear, false, Vec::new());
        let cased = entry(cased, true, Vec::new());
        let words = entry(words, true, self.context(terms));
        clear.into_iter().chain(cased).chain(words).collect()
    }

    /// Returns the subject's words, and the rest of the name's other spellings (`airlines`).
    fn context(&self, terms: &[Term]) -> Vec<String> {
        let mut context: Vec<String> = Vec::new();
        let of_names = self.spellings.iter().flat_map(|spelling| {
            let words = text::words(spelling).skip(1);
            words.map(|word| word.text.into_owned()).collect::<Vec<_>>()
        });
        let of_terms = terms.iter().map(|term| term.text.clone());
        for word in of_names.chain(of_terms) {
            if !background::is_stop_word(&word) && !word.contains(' ') && !context.contains(&word) {
                context.push(word);
            }
        }
        context.truncate(MAX_CONTEXT);
        context
    }
}

/// Returns whether a spelling alone may mean something else.
fn usage(spelling: &str) -> Usage {
    if spelling.starts_with(['@', '#']) || is_camel_case(spelling) {
        return Usage::Name;
    }
    let mut words = text::words(spelling);
    let (Some(word), None) = (words.next(), words.next()) else {
        return Usage::Name;
    };
    // Two letters are an abbreviation of many things.
    if word.text.chars().nth(2).is_none() || background::is_stop_word(&word.text) {
        return Usage::Word;
    }
    match background::usage(&text::stem(&word.text)) {
        // `AWS` is not a form of `aw`.
        Usage::Word if is_in_capitals(spelling) => Usage::Both,
        usage => usage,
    }
}
