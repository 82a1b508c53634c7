//! Posts labelled at the natural rate: `data/judged` contains customers, pages and labels; the posts themselves come
//! from the corpus in the data folder.

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

impl Pooled {
    /// Reads the labels, and the labelled posts from `corpus`.
    pub(crate) fn read(corpus: &Path) -> Result<Self, Error> {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/judged");
        let mut judged = Vec::new();
        for line in std::fs::read_to_string(data.join("labels.tsv"))?.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [customer, focus, post, label, weight] = fields[..] else {
                return Err(format!("not a label: {line}").into());
            };
            judged.push(Judged {
                customer: customer.to_owned(),
                focus: Focus::ALL
                    .into_iter()
                    .find(|f| f.as_str() == focus)
                    .ok_or("no such focus")?,
                post: post.to_owned(),
                label: label.parse()?,
                weight: weight.parse()?,
            });
        }
        let wanted: HashSet<&str> = judged.iter().map(|judged| judged.post.as_str()).collect();
        let mut posts = HashMap::new();
        for row in lines(&corpus.join("reddit_top_2013.jsonl.gz"))? {
            if wanted.contains(text(&row, "id")) {
                let field = |name| text(&row, name).to_owned();
                posts.insert(field("id"), (field("title"), field("text")));
            }
        }
        let plans = manager_compiler::evaluate::Plans::compile(
            &data.join("customers"),
            None,
            domain::Sensitivity::Balanced,
        )?;
        Ok(Self {
            judged,
            plans: plans
                .into_iter()
                .map(|(c, f, plan)| ((c, f), plan))
                .collect(),
            posts,
        })
    }

    /// Returns `None` for a post that the corpus does not contain.
    pub(crate) fn post(&self, id: &str) -> Option<PostText> {
        let (title, text) = self.posts.get(id)?;
        Some(PostText::new(Some(title), Some(text)))
    }
}
