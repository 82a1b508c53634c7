//! Creates the table of word frequencies that the compiler ships.
//!
//! `cargo run --release --manifest-path tools/train/Cargo.toml --bin background -- DIR WORDS > background.txt`
//!
//! DIR holds `reddit_titles/titles.tsv.gz` (`subreddit<TAB>title`) and
//! `reddit_selfposts/data.jsonl.gz` (`{"text"}`); WORDS is a dictionary, one word a line, names with a
//! capital. The same input gives the same bytes.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use flate2::read::GzDecoder;
use matching::text;

const MAX_WORDS: usize = 30_000;
const MIN_DOCUMENTS: u32 = 4;

#[derive(Default, Clone)]
struct Count {
    documents: u32,
    /// Occurrences in the middle of sentences that are not written in capitals throughout.
    lower: u32,
    capital: u32,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(dir), Some(dictionary)) = (arguments.next(), arguments.next()) else {
        return Err("usage: background DIR WORDS".into());
    };
    let mut counter = Counter::default();
    for word in std::fs::read_to_string(dictionary)?.lines() {
        if !word.chars().any(|c| c.is_uppercase() || c == '\'') {
            let folded = text::fold(word);
            counter.dictionary.insert(text::stem(&folded).into_owned());
        }
    }
    for line in lines(&Path::new(&dir).join("reddit_titles/titles.tsv.gz"))? {
        if let Some((_, title)) = line?.split_once('\t') {
            counter.add(title);
        }
    }
    for line in lines(&Path::new(&dir).join("reddit_selfposts/data.jsonl.gz"))? {
        let post: serde_json::Value = serde_json::from_str(&line?)?;
        counter.add(post["text"].as_str().unwrap_or_default());
    }
    print!("{}", counter.table());
    Ok(())
}

fn lines(path: &Path) -> std::io::Result<std::io::Lines<impl BufRead>> {
    Ok(BufReader::new(GzDecoder::new(File::open(path)?)).lines())
}

#[derive(Default)]
struct Counter {
    documents: u32,
    words: HashMap<String, Count>,
    stems: HashMap<String, String>,
    /// Stems of words that the dictionary contains in lower case.
    dictionary: HashSet<String>,
}

impl Counter {
    fn add(&mut self, document: &str) {
        self.documents += 1;
        let words: Vec<_> = text::words(document).collect();
        let capitals = words.iter().filter(|w| is_capital(w.raw)).count();
        let running = words.len() >= 4 && capitals * 2 < words.len();
        let mut seen = HashSet::new();
        for (at, word) in words.iter().enumerate() {
            let stem = self
                .stems
                .entry(word.text.to_string())
                .or_insert_with(|| text::stem(&word.text).into_owned())
                .clone();
            let count = self.words.entry(stem.clone()).or_default();
            if seen.insert(stem) {
                count.documents += 1;
            }
            // A free place before a word is the start of a sentence.
            let inside = at > 0 && words[at - 1].place + 1 == word.place;
            if running && inside {
                if is_capital(word.raw) {
                    count.capital += 1;
                } else {
                    count.lower += 1;
                }
            }
        }
    }

    fn mark(&self, word: &str, count: &Count) -> &'static str {
        let all = count.lower + count.capital;
        match () {
            () if !self.dictionary.contains(word) => "^",
            () if count.lower * 10 < all * 3 => "^",
            () if count.lower * 20 < all * 11 => "~",
            () => "",
        }
    }

    /// Prints `documents N`, then lines of words with the same number of documents, rounded down to a quarter of a
    /// power of two. `^` marks names: words that are in no dictionary, or that are rarely written in lower case; `~`
    /// marks dictionary words that are names about as often as not.
    fn table(&self) -> String {
        let mut words: Vec<_> = self
            .words
            .iter()
            .filter(|(word, count)| count.documents >= MIN_DOCUMENTS && is_listed(word))
            .collect();
        words.sort_by(|a, b| (b.1.documents, a.0).cmp(&(a.1.documents, b.0)));
        words.truncate(MAX_WORDS);
        let mut lines: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for (word, count) in words {
            let mark = self.mark(word, count);
            lines
                .entry(quarter_log2(count.documents))
                .or_default()
                .push(format!("{word}{mark}"));
        }
        let mut out = format!("documents {}\n", self.documents);
        for (bucket, mut words) in lines.into_iter().rev() {
            words.sort();
            out.push_str(&format!("{bucket} {}\n", words.join(" ")));
        }
        out
    }
}

fn is_capital(word: &str) -> bool {
    word.chars().next().is_some_and(char::is_uppercase)
}

fn is_listed(word: &str) -> bool {
    (2..=24).contains(&word.len())
        && word.chars().all(char::is_alphanumeric)
        && !word.chars().all(char::is_numeric)
}

/// Returns `floor(4 · log2(n))`, computed in integers so that the result is the same on every machine.
fn quarter_log2(n: u32) -> u32 {
    let n = u128::from(n).pow(4);
    (0..)
        .take_while(|&b| (1_u128 << b) <= n)
        .last()
        .unwrap_or(0)
}
