//! The benchmark: customers, posts and labels.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use domain::Focus;

use crate::{
    Error,
    data::{lines, text},
    reserved::Reserved,
};

pub(crate) struct Bench {
    /// Title and text, by id.
    pub(crate) posts: BTreeMap<String, (String, String)>,
    pub(crate) gold: Vec<Judged>,
    /// For each post: the subject that it was drawn for, and its labels by `Focus as usize`.
    pub(crate) labels: BTreeMap<String, (String, [Option<bool>; 3])>,
    pub(crate) plans: HashMap<(String, Focus), matching::Plan>,
    reserved: Reserved,
}

pub(crate) struct Judged {
    pub(crate) customer: String,
    pub(crate) focus: Focus,
    pub(crate) post: String,
    pub(crate) label: u8,
}

impl Bench {
    pub(crate) fn read(dir: &Path) -> Result<Self, Error> {
        let post = |row: &serde_json::Value| {
            let own = |field| text(row, field).to_owned();
            (own("id"), (own("title"), own("text")))
        };
        let posts = lines(&dir.join("posts.jsonl.gz"))?
            .iter()
            .map(post)
            .collect();
        let mut gold = Vec::new();
        for row in lines(&dir.join("gold.jsonl"))? {
            let focus = Focus::ALL.into_iter().find(|f| row["focus"] == f.as_str());
            gold.push(Judged {
                customer: text(&row, "customer").to_owned(),
                focus: focus.ok_or("no such focus")?,
                post: text(&row, "post_id").to_owned(),
                label: u8::try_from(row["label"].as_u64().ok_or("no label")?)?,
            });
        }
        let mut labels = BTreeMap::new();
        let reserved = Reserved::read(&dir.join("../pooled"))?;
        for row in lines(&dir.join("reddit_labels.jsonl"))? {
            if reserved.has(text(&row, "id")) {
                continue;
            }
            let of = ["sales", "vendor", "trouble"].map(|f| row[f].as_u64().map(|l| l == 1));
            labels.insert(
                text(&row, "id").to_owned(),
                (text(&row, "topic").to_owned(), of),
            );
        }
        let plans = compiling::evaluate::Plans::compile(
            &dir.join("customers"),
            None,
            domain::Sensitivity::Balanced,
        )?;
        for customer in plans.skipped() {
            eprintln!("warning: {customer}");
        }
        Ok(Self {
            posts,
            gold,
            labels,
            plans: plans
                .into_iter()
                .map(|(c, f, plan)| ((c, f), plan))
                .collect(),
            reserved,
        })
    }

    /// Returns whether the post is in the public domain and may be used for training; the others are only used for
    /// evaluation.
    pub(crate) fn may_train(&self, post: &str) -> bool {
        let is_free = post.starts_with("r_") || post.starts_with("g_") || post.starts_with("w_");
        is_free && !self.reserved.has(post)
    }
}
