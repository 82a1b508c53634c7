//! Posts labelled at the natural rate: the compiler's `data/judged` contains customers, pages and labels; the posts
//! themselves come from the corpus in the data folder.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use domain::Focus;
use matching::{Plan, PostText};

use crate::{
    Error,
    data::{lines, text},
};

/// Folders of the compiler's data.
const FOLDERS: [&str; 3] = ["judged", "kept_apart", "checked"];
/// Files of the corpus, with what precedes their ids in the labels.
const CORPUS: [(&str, &str); 2] = [
    ("reddit_top_2013.jsonl.gz", ""),
    ("hackernews_2015_2016.jsonl.gz", "hn_"),
];

pub(crate) struct Pooled {
    pub(crate) judged: Vec<Judged>,
    pub(crate) plans: HashMap<(String, Focus), Plan>,
    posts: HashMap<String, (String, String)>,
}

pub(crate) struct Judged {
    pub(crate) customer: String,
    pub(crate) focus: Focus,
    pub(crate) post: String,
    pub(crate) label: u8,
    /// Number of the feed's posts that this one represents.
    pub(crate) weight: f64,
}

impl Judged {
    fn parse(line: &str) -> Result<Self, Error> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [customer, focus, post, label, weight] = fields[..] else {
            return Err(format!("not a label: {line}").into());
        };
        Ok(Self {
            customer: customer.to_owned(),
            focus: Focus::ALL
                .into_iter()
                .find(|f| f.as_str() == focus)
                .ok_or("no such focus")?,
            post: post.to_owned(),
            label: label.parse()?,
            weight: weight.parse()?,
        })
    }
}

impl Pooled {
    /// Reads the labels, and the labelled posts from `corpus`.
    pub(crate) fn read(corpus: &Path) -> Result<Self, Error> {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/compiling/data");
        let mut judged = Vec::new();
        let mut plans = HashMap::new();
        for folder in FOLDERS.map(|folder| data.join(folder)) {
            for line in std::fs::read_to_string(folder.join("labels.tsv"))?.lines() {
                judged.push(Judged::parse(line)?);
            }
            let compiled = compiling::evaluate::Plans::compile(
                &folder.join("customers"),
                None,
                domain::Sensitivity::Balanced,
            )?;
            plans.extend(compiled.into_iter().map(|(c, f, plan)| ((c, f), plan)));
        }
        let wanted: HashSet<&str> = judged.iter().map(|judged| judged.post.as_str()).collect();
        let mut posts = HashMap::new();
        for (file, prefix) in CORPUS {
            for row in lines(&corpus.join(file))? {
                let id = format!("{prefix}{}", text(&row, "id"));
                if wanted.contains(id.as_str()) {
                    let field = |name| text(&row, name).to_owned();
                    posts.insert(id, (field("title"), field("text")));
                }
            }
        }
        judged.retain(|judged| posts.contains_key(&judged.post));
        Ok(Self {
            judged,
            plans,
            posts,
        })
    }

    /// Returns `None` for a post that the corpus does not contain.
    pub(crate) fn post(&self, id: &str) -> Option<PostText> {
        let (title, text) = self.posts.get(id)?;
        Some(PostText::new(Some(title), Some(text)))
    }
}
