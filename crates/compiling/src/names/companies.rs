//! Companies behind a name: `Steam by Valve`, `a Valve company`, `part of Alphabet`, `© 2026 Valve Corporation`.

use std::sync::LazyLock;

use matching::text;

use super::{
    named::Named,
    spelling::{clean, squeeze},
};
use crate::{background, word_lists};

const MAX_NAME_WORDS: usize = 3;
const MAX_SIGNATURE_WORDS: usize = 5;
/// Maximum words of a subject; no name has as many.
const MAX_SUBJECT_WORDS: usize = 20;
/// Maximum owners of a line; more are not typical.
const MAX_PARENTS: usize = 50;
/// Words before the owner's name, folded.
static OWNED: LazyLock<Vec<&str>> =
    LazyLock::new(|| word_lists::entries(include_str!("../../data/words/owned_by.txt")).collect());

/// Certainty that a company named in a line is the customer's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tie {
    /// The line states it.
    Certain,
    /// Certain only if this name is the customer.
    If(String),
}

impl Tie {
    pub(super) fn is_of(&self, own: &[Named]) -> bool {
        match self {
            Self::Certain => true,
            Self::If(name) => {
                let name = squeeze(name);
                own.iter()
                    .flat_map(|named| &named.spellings)
                    .any(|s| squeeze(s) == name)
            }
        }
    }
}

/// Returns both names of `Kindle by Amazon`, in a part of a title.
///
/// One is certain if the other is known to be the customer. Both are certain if one of them is not an ordinary word:
/// `Espresso by Night` is a headline.
pub(super) fn product_by_company(part: &str) -> Vec<(Tie, String)> {
    for by in [" by ", " von ", " de "] {
        let Some((product, company)) = part.split_once(by) else {
            continue;
        };
        let is_short = |name: &str| (1..=MAX_NAME_WORDS).contains(&name.split_whitespace().count());
        let is_made_up = |name: &str| {
            !text::words(name).all(|word| background::is_ordinary(&text::stem(&word.text)))
        };
        if ![product, company]
            .into_iter()
            .all(|name| is_short(name) && is_capitalised(name))
        {
            continue;
        }
        let mut found = vec![
            (Tie::If(company.to_owned()), product.to_owned()),
            (Tie::If(product.to_owned()), company.to_owned()),
        ];
        if by == " by " && is_made_up(company) && is_made_up(product) {
            found.extend([product, company].map(|name| (Tie::Certain, name.to_owned())));
        }
        return found;
    }
    Vec::new()
}

/// Returns the owners that a line names.
pub(super) fn parents(line: &str) -> Vec<(Tie, String)> {
    let mut found = Vec::new();
    for sentence in line.split_inclusive(['.', '!', '?', '|', '·', '©']) {
        let words: Vec<&str> = sentence.split_whitespace().collect();
        let folded: Vec<String> = words.iter().map(|word| squeeze(word)).collect();
        let subject = Subject::of(&words, &folded);
        for at in 0..words.len() {
            if found.len() >= MAX_PARENTS {
                return found;
            }
            // A page says `a Valve company` only about itself.
            if matches!(folded[at].as_str(), "a" | "an") {
                let company = folded
                    .iter()
                    .skip(at + 1)
                    .take(MAX_NAME_WORDS + 1)
                    .position(|word| word == "company");
                let name = company.and_then(|length| words.get(at + 1..=at + length));
                if let Some(name) = name
                    && (1..=MAX_NAME_WORDS).contains(&name.len())
                    && is_capitalised(&name.join(" "))
                    && is_named_company(&words, at, name.len())
                {
                    found.push((subject.tie(at), name.join(" ")));
                }
            }
            let owned = OWNED.iter().find(|owned| {
                let owned: Vec<&str> = owned.split(' ').collect();
                folded
                    .get(at..at + owned.len())
                    .is_some_and(|here| here == owned)
            });
            if let Some(owned) = owned
                && let Some(name) = owner(&words[at + owned.split(' ').count()..])
            {
                found.push((subject.tie(at), name));
            }
        }
    }
    found
}

/// Returns whether `a Valve company` ends its sentence, or a similar unit: `a British company` does not name one.
fn is_named_company(words: &[&str], at: usize, length: usize) -> bool {
    let ends = words
        .get(at + 1 + length)
        .is_none_or(|word| word.ends_with(['.', ',', '!', '|']));
    let last = words.len() == at + length + 2 || ends;
    let is_nationality = words[at + 1..=at + length].iter().all(|word| {
        ["ish", "can", "ese", "ian", "man", "nch", "tch", "edish"]
            .iter()
            .any(|end| word.ends_with(end))
    });
    last && !is_nationality
}

/// Words that a sentence begins with, as far as they may be its subject.
struct Subject<'a> {
    words: Vec<&'a str>,
    /// Place of the first word such as `we`.
    itself: Option<usize>,
}

impl<'a> Subject<'a> {
    fn of(words: &[&'a str], folded: &[String]) -> Self {
        let itself = folded.iter().position(|word| {
            matches!(
                word.as_str(),
                "we" | "us" | "our" | "wir" | "nous" | "somos" | "were" | "now" | "is" | "proudly"
            )
        });
        let words = words
            .iter()
            .take(MAX_SUBJECT_WORDS.min(itself.unwrap_or(usize::MAX)))
            .take_while(|word| word.starts_with(char::is_uppercase))
            .map(|word| word.trim_end_matches([',', '–', '—']))
            .collect();
        Self { words, itself }
    }

    /// Returns how certain it is that the sentence is about the customer, by the words before a place: certain if its subject
    /// is `we` or missing.
    fn tie(&self, at: usize) -> Tie {
        let words = &self.words[..self.words.len().min(at)];
        let is_of_itself = at == 0 || self.itself.is_some_and(|first| first < at);
        if words.is_empty() && is_of_itself {
            Tie::Certain
        } else {
            Tie::If(words.join(" "))
        }
    }
}

/// Returns the name at the beginning, if the sentence or clause ends with it: `Alphabet`, `the Volkswagen Group`.
fn owner(words: &[&str]) -> Option<String> {
    let (words, has_article) = match words {
        ["the" | "The" | "der" | "la" | "le", rest @ ..] => (rest, true),
        _ => (words, false),
    };
    let mut name = Vec::new();
    for word in words.iter().take(MAX_NAME_WORDS + 1) {
        if !word.starts_with(char::is_uppercase) {
            break;
        }
        name.push(*word);
        if word.ends_with([',', '.', ';', '!', '|', ')']) {
            break;
        }
    }
    let ends = name.len() == words.len()
        || name
            .last()
            .is_some_and(|word| !word.ends_with(char::is_alphanumeric))
        || words.get(name.len()).is_some_and(|word| {
            matches!(
                squeeze(word).as_str(),
                "group" | "family" | "and" | "since" | "in" | "as"
            )
        });
    let is_group = name.last().is_some_and(|word| {
        matches!(
            squeeze(word).as_str(),
            "group" | "gruppe" | "family" | "company" | "inc" | "corporation" | "holding"
        )
    }) || words
        .get(name.len())
        .is_some_and(|word| matches!(squeeze(word).as_str(), "group" | "family"));
    if is_group
        && name.len() > 1
        && matches!(
            squeeze(name[name.len() - 1]).as_str(),
            "group" | "gruppe" | "family" | "company"
        )
    {
        name.pop();
    }
    let name = clean(&name.join(" "));
    (ends && (!has_article || is_group) && !name.is_empty()).then_some(name)
}

/// Returns the owner that a copyright line names: certain with a legal form, or if it is not an ordinary word.
pub(super) fn copyright(line: &str) -> Option<(Tie, String)> {
    let name = signature(line)?;
    let is_made_up =
        text::words(&name).any(|word| !background::is_ordinary(&text::stem(&word.text)));
    let written = line.split_once(&name).map_or("", |(_, rest)| rest);
    let written = written.split_whitespace().next().unwrap_or_default();
    let has_legal_form =
        clean(&format!("{name} {written}")) == name && !squeeze(written).is_empty();
    let tie = if is_made_up || has_legal_form {
        Tie::Certain
    } else {
        Tie::If(name.clone())
    };
    Some((tie, name))
}

/// Returns the name in a copyright line.
pub(super) fn signature(line: &str) -> Option<String> {
    let lower = line.to_lowercase();
    let at = line.find('©').map(|at| at + '©'.len_utf8()).or_else(|| {
        let at = lower.find("copyright")? + "copyright".len();
        line.is_char_boundary(at).then_some(at)
    })?;
    let words = line[at..].split_whitespace().skip_while(|word| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        !bare.chars().any(char::is_alphabetic)
            || matches!(bare.to_lowercase().as_str(), "copyright" | "by" | "c")
    });
    let mut name: Vec<&str> = Vec::new();
    for word in words.take(MAX_SIGNATURE_WORDS) {
        let rights = matches!(
            squeeze(word).as_str(),
            "all" | "alle" | "tous" | "todos" | "rights" | "privacy" | "terms"
        );
        let is_legal_form = |word: &str| word.chars().nth(5).is_none();
        if rights || !(is_capitalised(word) || word == "&") {
            break;
        }
        name.push(word);
        // `Brewforge, Inc.`
        if word.ends_with(['.', '|', ';']) || (word.ends_with(',') && !is_legal_form(word)) {
            break;
        }
    }
    let name = clean(&name.join(" "));
    let name = name.split(',').next().unwrap_or_default().trim().to_owned();
    (!name.is_empty()).then_some(name)
}

fn is_capitalised(name: &str) -> bool {
    name.split_whitespace().all(|word| {
        word == "&"
            || word.chars().any(char::is_uppercase)
            || word.starts_with(|c: char| c.is_ascii_digit())
    })
}
