//! How common words are, in posts at large and on web pages.
//!
//! The table (`data/README.md` tells its origin) gives the inverse document frequency of English
//! stems. Words that it does not have are rare. Stop words never make a term; web words
//! (`pricing`, `newsletter`) are common on pages however rare they are in posts, and never make one
//! either. Reading the table takes about a millisecond, once.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use matching::text;

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

/// The natural logarithm of how many times rarer than "in every post" a stem is: 0 to 12.5.
#[must_use]
pub fn idf(stem: &str) -> f64 {
    match TABLE.words.get(stem) {
        Some(word) => TABLE.idf_of_bucket(word.bucket),
        // One document fewer than the rarest listed.
        None => TABLE.idf_of_bucket(4),
    }
}

/// The inverse document frequency of a stem that the table does not have.
#[must_use]
pub fn idf_of_unknown() -> f64 {
    TABLE.idf_of_bucket(4)
}

/// Whether a stem is a word of the language, rather than a name or an invented word.
#[must_use]
pub fn is_ordinary(stem: &str) -> bool {
    TABLE.words.get(stem).is_some_and(|word| !word.capitalised)
}

/// Whether the table has the stem at all.
#[must_use]
pub fn is_known(stem: &str) -> bool {
    TABLE.words.contains_key(stem)
}

/// Whether a folded word is of the kind that says nothing: `the`, `with`, `very`.
#[must_use]
pub fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.contains(word)
}

/// Whether a stem belongs to the furniture of web pages: `pricing`, `login`, `newsletter`.
#[must_use]
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
    capitalised: bool,
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
                        let name = word.strip_suffix('^').unwrap_or(word);
                        let capitalised = name.len() < word.len();
                        let word = Word {
                            bucket,
                            capitalised,
                        };
                        table.words.insert(name, word);
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
    list.lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::split_whitespace)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{idf, idf_of_unknown, is_ordinary, is_stop_word, is_web_word};

    #[test]
    fn rarer_words_weigh_more() {
        assert!(idf("the") < 2.0);
        assert!(idf("the") < idf("time") && idf("time") < idf("bike"));
        assert!(idf("bike") < idf("espresso") && idf("espresso") < idf_of_unknown());
        assert!(idf_of_unknown() < 12.6);
    }

    #[test]
    fn words_are_told_from_names_and_furniture() {
        assert!(is_ordinary("giant") && !is_ordinary("microsoft") && !is_ordinary("brewforge"));
        assert!(is_stop_word("with") && !is_stop_word("bike"));
        assert!(is_web_word("newslett") && is_web_word("price") && !is_web_word("espresso"));
    }
}
