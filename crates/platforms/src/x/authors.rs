//! Names of authors, which X sells apart from their posts.
//!
//! Search would expand each page's authors anew, at twice the price of a post. So each is looked up once,
//! by id, and remembered; a name costs two posts of the budget. Whose name is not known is named by the id:
//! a post is never held back for it.

use std::{
    collections::{HashMap, HashSet},
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::Deserialize;

use super::tweet::number;

/// What a user costs, in posts.
pub(super) const PRICE: u32 = 2;
/// How many ids one request may name.
pub(super) const PER_CALL: usize = 100;
/// Half of the authors that are remembered.
const MAX_KNOWN: usize = 20_000;

#[derive(Debug, Default)]
pub(super) struct Authors {
    known: Mutex<Generations>,
}

/// Those met of late, and those before them, which go first. `None` for who has no name (any more).
#[derive(Debug, Default)]
struct Generations {
    recent: HashMap<String, Option<String>>,
    older: HashMap<String, Option<String>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct User {
    id: String,
    username: String,
}

impl Authors {
    pub(super) fn name(&self, id: &str) -> Option<String> {
        self.known().get(id).flatten()
    }

    /// Those of `ids` who were never looked up, each once.
    pub(super) fn unknown<'a>(&self, ids: impl Iterator<Item = &'a str>) -> Vec<String> {
        let mut known = self.known();
        let mut asked = HashSet::new();
        ids.filter(|id| number(id).is_some() && known.get(id).is_none() && asked.insert(*id))
            .map(str::to_owned)
            .collect()
    }

    /// Remembers the answer to a look-up of `asked`.
    pub(super) fn learn(&self, asked: &[String], users: Vec<User>) {
        let mut known = self.known();
        for id in asked {
            known.put(id.clone(), None);
        }
        for user in users {
            if asked.contains(&user.id) && is_name(&user.username) {
                known.put(user.id, Some(user.username));
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Generations> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn get(&mut self, id: &str) -> Option<Option<String>> {
        if let Some(name) = self.recent.get(id) {
            return Some(name.clone());
        }
        let name = self.older.remove(id)?;
        self.put(id.to_owned(), name.clone());
        Some(name)
    }

    fn put(&mut self, id: String, name: Option<String>) {
        if self.recent.len() >= MAX_KNOWN {
            self.older = mem::take(&mut self.recent);
        }
        self.recent.insert(id, name);
    }
}

fn is_name(name: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (1..=50).contains(&name.len()) && name.bytes().all(word)
}
