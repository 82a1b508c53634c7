//! Names of authors, which X bills separately from their posts.
//!
//! Search would expand each page's authors again, at twice the price of a post. So each author is looked up
//! once, by id, and cached; a name costs two posts of the budget. An unknown name is replaced by the id: a post
//! never waits for it.

use std::{
    collections::{HashMap, HashSet},
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::Deserialize;

use super::{X, tweet::number};
use crate::address::below;

/// Price of a user, in posts.
pub(super) const PRICE: u32 = 2;
/// Maximum number of ids in one request.
pub(super) const PER_CALL: usize = 100;
/// Half the maximum number of cached authors.
const MAX_KNOWN: usize = 20_000;

#[derive(Debug, Default)]
pub(super) struct Authors {
    known: Mutex<Generations>,
}

/// The recently used authors, and the older ones, which are evicted first. `None` for a user without a name
/// (any more).
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

    /// Returns those of `ids` that were never looked up, without duplicates.
    pub(super) fn unknown<'a>(&self, ids: impl Iterator<Item = &'a str>) -> Vec<String> {
        let mut known = self.known();
        let mut asked = HashSet::new();
        ids.filter(|id| number(id).is_some() && known.get(id).is_none() && asked.insert(*id))
            .map(str::to_owned)
            .collect()
    }

    /// Stores the response to a look-up of `asked`.
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

/// Looks up the unknown authors, within the budget. Never fails.
pub(super) async fn name(platform: &X, ids: impl Iterator<Item = &str>) {
    let unknown = platform.authors.unknown(ids);
    for some in unknown.chunks(PER_CALL) {
        let wanted = u32::try_from(some.len()).unwrap_or_default() * PRICE;
        let Ok(granted) = platform.spend(wanted, PRICE).await else {
            return;
        };
        let asked = usize::try_from(granted / PRICE).unwrap_or_default();
        let asked = &some[..asked.min(some.len())];
        let mut url = below(&platform.base_url, "2/users");
        url.query_pairs_mut()
            .append_pair("ids", &asked.join(","))
            .append_pair("user.fields", "username,name");
        match platform.get(&url, "users").await {
            Ok(answer) => {
                let users: Vec<User> = answer
                    .data
                    .iter()
                    .filter_map(|one| User::deserialize(one).ok())
                    .collect();
                let paid = u32::try_from(users.len()).unwrap_or_default() * PRICE;
                platform.budget.refund(granted.saturating_sub(paid)).await;
                platform.authors.learn(asked, users);
            }
            Err(error) => {
                tracing::debug!(%error, "could not look up authors");
                platform.was_not_answered(granted, &error).await;
                return;
            }
        }
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
