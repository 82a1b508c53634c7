//! The data sets, as rows for each classifier.
//!
//! All are public domain, CC BY, MIT or our own; `crates/matching/model/README.md` describes each.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use domain::Focus;
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::{Error, reserved::Reserved};

/// A post with its label for one classifier.
pub(crate) struct Example {
    pub(crate) title: String,
    pub(crate) text: String,
    pub(crate) label: bool,
    pub(crate) weight: f64,
}

impl Example {
    fn new(text: &str, label: bool, weight: f64) -> Self {
        Self {
            title: String::new(),
            text: text.to_owned(),
            label,
            weight,
        }
    }
}

/// A post that was written for training.
pub(crate) struct OwnPost {
    pub(crate) title: String,
    pub(crate) text: String,
    /// Labels by `Focus as usize`.
    pub(crate) labels: [bool; 3],
}

/// Reads the compiler's `data/posts`.
pub(crate) fn own() -> Result<Vec<OwnPost>, Error> {
    let mut posts = Vec::new();
    for file in [
        include_str!("../../../crates/compiling/data/posts/buying.tsv"),
        include_str!("../../../crates/compiling/data/posts/comparison.tsv"),
        include_str!("../../../crates/compiling/data/posts/trouble.tsv"),
    ] {
        for line in file.lines() {
            let (labels, post) = line.split_once('\t').ok_or("a post without labels")?;
            let (title, text) = post.split_once(" || ").unwrap_or(("", post));
            posts.push(OwnPost {
                title: title.to_owned(),
                text: text.to_owned(),
                labels: ['b', 'c', 't'].map(|label| labels.contains(label)),
            });
        }
    }
    Ok(posts)
}

/// Subforums where people ask what to read, play or buy.
const REQUESTS: [&str; 8] = [
    "gamingsuggestions",
    "booksuggestions",
    "MovieSuggestions",
    "Animesuggest",
    "ShouldIbuythisgame",
    "buildapcforme",
    "findareddit",
    "ifyoulikeblank",
];

/// Intents of an online bank's customers that express trouble.
const TROUBLE: [&str; 12] = [
    "declined",
    "failed",
    "wrong",
    "lost",
    "not_working",
    "not_recognised",
    "compromised",
    "stolen",
    "twice",
    "not_received",
    "not_updated",
    "swallowed",
];

/// Returns the examples of the public data sets for one classifier. Leaves out posts of the benchmark (`is_judged`).
pub(crate) fn public(
    focus: Focus,
    dir: &Path,
    is_judged: impl Fn(&str) -> bool,
) -> Result<Vec<Example>, Error> {
    let reserved = Reserved::read(&dir.join("pooled"))?;
    let mut examples = Vec::new();
    let mut add = |text: &str, label: bool, weight: f64| {
        examples.push(Example::new(text, label, weight));
    };
    let set = |name: &str| lines(&dir.join(name).join("data.jsonl.gz"));
    match focus {
        Focus::Sales => {
            for row in set("purchase_intent_iphonex")? {
                add(text(&row, "text"), row["label"] == 1, 0.2);
            }
            for row in set("banking77")?.iter().step_by(4) {
                add(text(row, "text"), false, 0.3);
            }
        }
        Focus::Competitor => {
            for row in set("jindal_liu")? {
                add(text(&row, "text"), row["label"] != "NONE", 0.5);
            }
        }
        Focus::Crisis => {
            for row in set("banking77")? {
                let intent = text(&row, "label");
                let trouble = TROUBLE.iter().any(|word| intent.contains(word));
                add(text(&row, "text"), trouble, 0.4);
            }
        }
    }
    for (at, row) in set("reddit_selfposts")?.iter().enumerate() {
        if reserved.has(text(row, "id")) || is_judged(&format!("g_{}", text(row, "id"))) {
            continue;
        }
        let request = REQUESTS.contains(&text(row, "sub"));
        match focus {
            Focus::Sales if request => add(text(row, "text"), true, 0.5),
            Focus::Sales if at % 3 == 0 => add(text(row, "text"), false, 0.6),
            Focus::Competitor | Focus::Crisis if at % 6 == 0 => add(text(row, "text"), false, 0.5),
            Focus::Sales | Focus::Competitor | Focus::Crisis => {}
        }
    }
    Ok(examples)
}

pub(crate) fn text<'a>(row: &'a Value, field: &str) -> &'a str {
    row[field].as_str().unwrap_or_default()
}

/// Reads JSON lines, gzipped or not.
pub(crate) fn lines(path: &Path) -> Result<Vec<Value>, Error> {
    let open = || File::open(path).map_err(|error| format!("{}: {error}", path.display()));
    let reader: Box<dyn BufRead> = if path.extension().is_some_and(|end| end == "gz") {
        Box::new(BufReader::new(GzDecoder::new(open()?)))
    } else {
        Box::new(BufReader::new(open()?))
    };
    let mut rows = Vec::new();
    for line in reader.lines() {
        let line = line?;
        if !line.trim().is_empty() {
            rows.push(serde_json::from_str(&line)?);
        }
    }
    Ok(rows)
}
