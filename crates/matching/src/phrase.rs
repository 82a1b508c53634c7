//! Terms as they are searched for: sequences of words, in one or two readings.

use std::sync::Arc;

use crate::text::{self, Kind, Token, code::Keys};

/// A sequence of words at consecutive positions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Phrase {
    /// The words; at least one, unless they were dropped.
    pub(crate) words: Vec<Box<str>>,
    /// Indexes of the words that begin a sentence within the term (`Yahoo! Mail`). In a post, a sentence may or may not
    /// begin there.
    pub(crate) after_break: Vec<usize>,
    /// True if the words are stems, and are compared with the stems of a post.
    pub(crate) stemmed: bool,
    /// Hashes of the words. The last field, so that they never affect a comparison.
    pub(crate) hashes: Vec<u64>,
}

/// A term, with the spellings that a post may use.
///
/// `wi-fi` is searched for as `wi fi` and as `wifi`. A single letter says nothing, so `e-mail` is only searched for as
/// `email`, and `Levi's` as `levis`. If the term has a mark (`@acme`, `c++`), the post must have it too.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Readings(Arc<[Phrase]>);

impl Readings {
    /// Reads the words as written, except for case and spelling; `None` when the term has no word.
    pub(crate) fn exact(term: &str) -> Option<Self> {
        Self::of(term, false)
    }

    /// Reads the words as stems, so that English inflections are equal.
    pub(crate) fn stemmed(term: &str) -> Option<Self> {
        Self::of(term, true)
    }

    /// Returns the readings with only what a search in a post uses: a word of one letter takes some 32 bytes, its
    /// allocation included.
    pub(crate) fn without_words(self) -> Self {
        let phrases = self.0.iter().map(|phrase| Phrase {
            words: Vec::new(),
            ..phrase.clone()
        });
        Self(phrases.collect())
    }

    pub(crate) fn phrases(&self) -> &[Phrase] {
        &self.0
    }

    fn of(term: &str, stemmed: bool) -> Option<Self> {
        let tokens = text::tokens(term);
        let phrase = |joined: bool| {
            let mut words: Vec<Box<str>> = Vec::new();
            let mut after_break = Vec::new();
            let mut next = 0;
            for token in path(&tokens, joined, stemmed) {
                if token.place > next {
                    after_break.push(words.len());
                }
                next = token.place + token.width;
                words.push(if stemmed {
                    text::stem(&token.text).into()
                } else {
                    token.text.as_ref().into()
                });
            }
            let keys = Keys::of_process();
            let codes = words.iter().map(|word| keys.code(word.as_bytes()));
            Phrase {
                hashes: codes.map(|code| keys.hash(code)).collect(),
                words,
                after_break,
                stemmed,
            }
        };
        let mut phrases = vec![phrase(false), phrase(true)];
        phrases.dedup();
        (!phrases[0].words.is_empty()).then(|| Self(phrases.into()))
    }
}

/// Returns one token per position, from the first to the last: marked tokens where there are any; joined ones where
/// requested, where a part is a single letter, and for a possessive; words otherwise.
///
/// Where the stem of a joined token is that of its first part (`cab-e`), a search takes the part, so the words are
/// returned.
fn path<'a, 'b>(
    tokens: &'a [Token<'b>],
    joined: bool,
    stemmed: bool,
) -> impl Iterator<Item = &'a Token<'b>> {
    let mut free = 0;
    let mut at = 0;
    std::iter::from_fn(move || {
        while tokens.get(at).is_some_and(|token| token.place < free) {
            at += 1;
        }
        let place = tokens.get(at)?.place;
        let readings = || {
            tokens[at..]
                .iter()
                .take_while(|token| token.place < place + MAX_WIDTH)
        };
        let here = |kind: Kind| readings().find(|token| token.place == place && token.kind == kind);
        let letter_in = |whole: &Token<'_>| {
            readings()
                .filter(|part| part.kind == Kind::Word && part.place < whole.place + whole.width)
                .any(|part| {
                    let mut chars = part.text.chars();
                    chars.next().is_some_and(char::is_alphabetic) && chars.next().is_none()
                })
        };
        let like_part =
            |whole: &Token<'_>| stemmed && text::stem(&whole.text) == text::stem(&tokens[at].text);
        let whole = |whole: &&Token<'_>| {
            joined || whole.width == 1 || (letter_in(whole) && !like_part(whole))
        };
        let token = here(Kind::Marked)
            .or_else(|| here(Kind::Joined).filter(whole))
            .unwrap_or(&tokens[at]);
        free = token.place + token.width;
        Some(token)
    })
}

/// Maximum width of a joined token, see `text`.
const MAX_WIDTH: u32 = 4;

#[cfg(test)]
mod tests {
    use super::Readings;

    fn shown(term: &str) -> Vec<String> {
        let readings = Readings::exact(term).map(|readings| readings.0);
        readings
            .unwrap_or_default()
            .iter()
            .map(|phrase| phrase.words.join(" "))
            .collect()
    }

    #[test]
    fn terms_have_all_their_readings() {
        for (term, expected) in [
            ("CRM", vec!["crm"]),
            ("project management", vec!["project management"]),
            ("Wi-Fi router", vec!["wi fi router", "wifi router"]),
            ("e-mail", vec!["email"]),
            ("AT&T", vec!["att"]),
            ("Levi's", vec!["levis"]),
            ("@acme", vec!["@acme"]),
            ("c++", vec!["c++"]),
            (".NET", vec![".net"]),
            ("iOS 7.1", vec!["ios 7 1", "ios 71"]),
            ("Dr. Martens", vec!["dr martens"]),
            ("東京", vec!["東 京"]),
            ("🔥!", vec![]),
        ] {
            assert_eq!(shown(term), expected, "{term}");
        }
    }
}
