//! Tells the entries of a feed apart, over all its readings.
//!
//! An entry is known by its id, else by its link, else by its content. Feeds break this in two ways. They give one id,
//! or one link, to several entries: such an id is never trusted again, and its entries are known by link and content.
//! Or they give the same entries new ids at each reading, for example with the number of a session: then an entry is
//! known by what it had in common with an entry of the last reading.

use std::collections::{HashMap, HashSet};

use domain::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use url::Url;

use super::document::{Entry, Rel};

/// The most ids that are not trusted.
const MAX_SHARED: usize = 64;
/// The most entries of the last reading that are remembered.
const MAX_WINDOW: usize = 300;
/// Values that programs write where there is no id.
const NO_IDS: [&str; 8] = ["n/a", "na", "none", "null", "nil", "undefined", "0", "-"];

/// What is remembered of a feed's entries between two readings, beside their keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Memory {
    /// Hashes of ids that several entries had.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shared: Vec<String>,
    /// Fingerprints of the entries of the last reading.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    window: Vec<u64>,
    /// At some reading, known entries had new ids.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) renews_ids: bool,
    /// Hour of the last reading of a whole document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) read_time: Option<Timestamp>,
}

impl Memory {
    pub(super) fn has_shared_ids(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Notes the ids that are shared by entries of this document, and returns the entries' keys, in their order.
    pub(super) fn keys_of(&mut self, entries: &[Entry]) -> Vec<String> {
        let names: Vec<Option<String>> = entries.iter().map(name).collect();
        let contents: Vec<String> = entries.iter().map(content).collect();
        let mut first: HashMap<&str, &str> = HashMap::new();
        for (name, content) in names.iter().zip(&contents) {
            let Some(name) = name else { continue };
            // The same entry twice is no other entry.
            if *first.entry(name).or_insert(content) != content {
                let name = short(name);
                if !self.shared.contains(&name) && self.shared.len() < MAX_SHARED {
                    self.shared.push(name);
                }
            }
        }
        let shared: HashSet<&str> = self.shared.iter().map(String::as_str).collect();
        let keys = names.into_iter().zip(contents).map(|(name, content)| {
            name.filter(|name| !shared.contains(&*short(name)))
                .unwrap_or(content)
        });
        keys.collect()
    }

    /// Returns those of the entries that an earlier reading had under another id.
    ///
    /// `is_new` says which entries have unknown keys. An entry without a date is only recognised if no entry is known:
    /// two entries without a date may be equal by chance.
    pub(super) fn recognise(&mut self, entries: &[Entry], is_new: &[bool]) -> Vec<bool> {
        let window: HashSet<u64> = self.window.iter().copied().collect();
        let all_are_new = is_new.iter().all(|is_new| *is_new);
        let found = entries.iter().zip(is_new).map(|(entry, is_new)| {
            let is_comparable = all_are_new || entry.time().is_some();
            *is_new && is_comparable && window.contains(&fingerprint(entry))
        });
        let found: Vec<bool> = found.collect();
        self.renews_ids |= found.contains(&true);
        found
    }

    /// Remembers the entries of a document that was read completely.
    pub(super) fn remember(&mut self, entries: &[Entry]) {
        self.window = entries.iter().take(MAX_WINDOW).map(fingerprint).collect();
    }
}

/// What the feed calls the entry: its id, else its link.
fn name(entry: &Entry) -> Option<String> {
    let is_name = |id: &&String| !NO_IDS.contains(&id.to_ascii_lowercase().as_str());
    let id = entry.id.as_ref().filter(is_name).cloned();
    id.or_else(|| link(entry).map(|url| url.to_string()))
}

fn link(entry: &Entry) -> Option<&Url> {
    let links = entry.links.iter().filter(|link| link.rel != Rel::Itself);
    links.min_by_key(|link| link.rel).map(|link| &link.url)
}

/// A hash of what an entry says. A title alone may repeat ("Weekly thread"), and so may a summary.
fn content(entry: &Entry) -> String {
    let date = entry
        .time()
        .map_or_else(String::new, |time| time.to_string());
    let text = if date.is_empty() { text(entry) } else { "" };
    let link = link(entry).map_or("", Url::as_str);
    hex::encode(&hash(&[title(entry), &date, text, link])[..16])
}

/// A short hash of what an entry says, and of its address without the parts that hold sessions.
fn fingerprint(entry: &Entry) -> u64 {
    /// So that the number is exact in any JSON parser.
    const BITS: u64 = (1 << 48) - 1;
    let date = entry
        .time()
        .map_or_else(String::new, |time| time.to_string());
    let address = link(entry).map_or_else(String::new, |url| {
        let path = url.path().split(';').next().unwrap_or_default();
        format!("{}{path}", url.host_str().unwrap_or_default())
    });
    let hash = hash(&[title(entry), &date, text(entry), &address]);
    let mut short = [0; 8];
    short.copy_from_slice(&hash[..8]);
    u64::from_be_bytes(short) & BITS
}

fn short(name: &str) -> String {
    hex::encode(&hash(&[name])[..12])
}

fn title(entry: &Entry) -> &str {
    entry.title.as_ref().map_or("", |title| title.source())
}

fn text(entry: &Entry) -> &str {
    let text = entry.content.as_ref().or(entry.summary.as_ref());
    text.map_or("", |text| text.source())
}

fn hash(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
        hash.update([0]);
    }
    hash.finalize().into()
}
