//! The possessions of an account: keys, resources that it saw in answers, and values that it sent.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use super::canary::Side;
use crate::{chance::Chance, harness::api::Api};

/// Number of values of each kind that are kept for later requests.
const KEPT: usize = 40;

pub(super) struct Estate {
    pub(super) side: Side,
    /// The account's keys: OWNER, EDITOR, VIEWER.
    pub(super) keys: [Api; 3],
    /// Full names by collection, oldest first.
    names: BTreeMap<String, VecDeque<String>>,
    /// Ids and addresses of posts in its Scans.
    pub(super) posts: VecDeque<String>,
    /// Pages to continue: operation, query and token.
    pub(super) pages: VecDeque<Page>,
    pub(super) etags: VecDeque<String>,
    /// Names of its private feeds.
    pub(super) feeds: VecDeque<String>,
    /// Canaries that its resources contain.
    pub(super) words: VecDeque<String>,
    minted: u64,
}

#[derive(Clone)]
pub(super) struct Page {
    pub(super) operation: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) token: String,
}

impl Estate {
    pub(super) fn new(side: Side, keys: [Api; 3]) -> Self {
        Self {
            side,
            keys,
            names: BTreeMap::new(),
            posts: VecDeque::new(),
            pages: VecDeque::new(),
            etags: VecDeque::new(),
            feeds: VecDeque::new(),
            words: VecDeque::new(),
            minted: 0,
        }
    }

    pub(super) fn content(&mut self, kind: &str) -> String {
        self.minted += 1;
        let word = self.side.content(kind, self.minted);
        keep(&mut self.words, word.clone());
        word
    }

    pub(super) fn secret(&mut self, kind: &str) -> String {
        self.minted += 1;
        self.side.secret(kind, self.minted)
    }

    /// Returns the names of the resources in a collection, oldest first.
    pub(super) fn all(&self, collection: &str) -> Vec<&str> {
        let names = self.names.get(collection).into_iter().flatten();
        names.map(String::as_str).collect()
    }

    pub(super) fn any(&self, collection: &str, chance: &mut Chance) -> Option<String> {
        let all = self.all(collection);
        chance.pick(&all).map(|name| (*name).to_owned())
    }

    /// Remembers what an answer shows. The audit log names resources that were deleted.
    pub(super) fn learn(&mut self, answer: &Value) {
        match answer {
            Value::Array(items) => items.iter().for_each(|item| self.learn(item)),
            Value::Object(fields) => {
                for (field, value) in fields {
                    match value.as_str() {
                        None if field == "auditEvents" => {}
                        Some(name) if name.starts_with("namespaces/") => self.add(name),
                        Some(value) if field == "url" => keep(&mut self.posts, value.to_owned()),
                        Some(value) if field == "id" && value.contains(':') => {
                            keep(&mut self.posts, value.to_owned());
                        }
                        _ => self.learn(value),
                    }
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, name: &str) {
        let mut segments = name.rsplit('/');
        let (_, collection) = (segments.next(), segments.next().unwrap_or_default());
        let names = self.names.entry(collection.to_owned()).or_default();
        if names.iter().any(|known| known == name) {
            return;
        }
        names.push_back(name.to_owned());
        if names.len() > KEPT {
            names.pop_front();
        }
    }

    /// Forgets a resource that was deleted, and those in it.
    pub(super) fn forget(&mut self, name: &str) {
        let within = format!("{name}/");
        for names in self.names.values_mut() {
            names.retain(|known| known != name && !known.starts_with(&within));
        }
    }
}

/// Adds a value; the oldest make way.
pub(super) fn keep<T>(values: &mut VecDeque<T>, value: T) {
    values.push_back(value);
    if values.len() > KEPT {
        values.pop_front();
    }
}
