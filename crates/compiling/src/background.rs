//! Word frequencies, in ordinary posts and on web pages.
//!
//! The table (`data/README.md` describes its origin) gives the inverse document frequency of English stems. Words that
//! it does not contain are rare. Stop words never become a term. Web words (`pricing`, `newsletter`) are common on
//! pages even if they are rare in posts, and never become a term either. Reading the table takes about a millisecond,
//! once.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use matching::text;

use crate::word_lists;

static TABLE: LazyLock<Table> =
    LazyLock::new(|| Table::parse(include_str!("../data/background.txt")));
static STOP_WORDS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| words(include_str!("../data/stop_words.txt")));
static WEB_WORDS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    words(include_str!("../data/web_words.txt"))
        .into_iter()
        .map(|word| text::stem(word).into_owned())
        .collect()
});

/// Returns the natural logarithm of how many times rarer than "in every post" a stem is: 0 to 12.5.
pub fn idf(stem: &str) -> f64 {
    match TABLE.words.get(stem) {
        Some(word) => TABLE.idf_of_bucket(word.bucket),
        None => idf_of_unknown(),
    }
}

/// A word that occurs in no post may be the subject's own term or chance; it counts as one of medium rarity.
const UNKNOWN_IDF: f64 = 5.0;

/// Returns the inverse document frequency of a stem that is not in the table.
pub fn idf_of_unknown() -> f64 {
    UNKNOWN_IDF
}

/// Use of a stem: as a name, as an ordinary word, or as both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// In no dictionary, or rarely written in lower case: `netflix`, `toyota`, `google`.
    Name,
    /// A dictionary word that is used as a name about as often: `apple`, `twitter`, `steam`.
    Both,
    /// An ordinary word: `square`, `target`, `beats`.
    Word,
}

/// Returns how ordinary posts use a stem. A stem that is not in the table is too rare to be a common word.
pub fn usage(stem: &str) -> Usage {
    TABLE.words.get(stem).map_or(Usage::Name, |word| word.usage)
}

/// Returns whether a stem is a word of the language and not a name.
pub fn is_ordinary(stem: &str) -> bool {
    usage(stem) == Usage::Word
}

/// Returns whether the table contains the stem.
pub fn is_known(stem: &str) -> bool {
    TABLE.words.contains_key(stem)
}

/// Returns whether a folded word is a stop word: `the`, `with`, `very`.
pub fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.contains(word)
}

/// Returns whether a stem belongs to the standard wording of web pages: `pricing`, `login`, `newsletter`.
pub fn is_web_word(stem: &str) -> bool {
    WEB_WORDS.contains(stem)
}

struct Table {
    ln_documents: f64,
    words: HashMap<&'static str, Word>,
}

struct Word {
    /// Four times the binary logarithm of the number of documents.
    bucket: u8,
    usage: Usage,
}

impl Table {
    fn parse(data: &'static str) -> Self {
        let mut table = Self {
            ln_documents: 0.0,
            words: HashMap::new(),
        };
        for line in data.lines() {
            let mut fields = line.split(' ');
            match fields.next() {
                Some("documents") => {
                    let documents = fields.next().and_then(|n| n.parse::<u32>().ok());
                    table.ln_documents = documents.map_or(0.0, f64::from).ln();
                }
                Some(bucket) => {
                    let bucket = bucket.parse().unwrap_or(0);
                    for word in fields {
                        let (stem, usage) = match word.split_at(word.len() - 1) {
                            (stem, "^") => (stem, Usage::Name),
                            (stem, "~") => (stem, Usage::Both),
                            _ => (word, Usage::Word),
                        };
                        table.words.insert(stem, Word { bucket, usage });
                    }
                }
                None => {}
            }
        }
        table
    }

    fn idf_of_bucket(&self, bucket: u8) -> f64 {
        (self.ln_documents - f64::from(bucket) / 4.0 * std::f64::consts::LN_2).max(0.0)
    }
}

fn words(list: &'static str) -> HashSet<&'static str> {
    word_lists::words(list).collect()
}

#[cfg(test)]
mod tests {
    use super::{idf, idf_of_unknown, is_ordinary, is_stop_word, is_web_word};

    #[test]
    fn rarer_words_weigh_more() {
        assert!(idf("the") < 2.0);
        assert!(idf("the") < idf("time") && idf("time") < idf("bike"));
        assert!(idf("bike") < idf("espresso"));
        assert!(idf("time") < idf_of_unknown() && idf_of_unknown() < idf("espresso"));
    }

    #[test]
    fn words_are_distinguished_from_names_and_page_furniture() {
        assert!(is_ordinary("giant") && !is_ordinary("microsoft") && !is_ordinary("brewforge"));
        assert!(is_stop_word("with") && !is_stop_word("bike"));
        assert!(is_web_word("newslett") && is_web_word("price") && !is_web_word("espresso"));
    }
}
