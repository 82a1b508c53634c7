//! Tells the entries of a feed apart, over all its readings.
//!
//! An entry is known by its id, else by its link, else by its content. Feeds break this in two ways. They give one id,
//! or one link, to several entries: such an id is never trusted again, and its entries are known by link and content.
//! Or they give the same entries new ids at each reading, for example with the number of a session: then an entry is
//! known by what it had in common with an entry of the last reading.

use std::collections::{BTreeMap, HashMap, HashSet};

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

/// Facts about a feed's entries that are kept between two readings, in addition to their keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Memory {
    /// Hashes of ids that several entries had.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shared: Vec<String>,
    /// Fingerprints of the entries of the last reading.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    window: Vec<u64>,
    /// Names of these entries, and what they stood for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    known: BTreeMap<u64, Known>,
    /// At the last reading with new ids, known entries had some of them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) renews_ids: bool,
    /// Hour of the last reading of a whole document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) read_time: Option<Timestamp>,
    /// Time of the middle entry of that document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) median_time: Option<Timestamp>,
    #[serde(skip)]
    uses_shared_ids: bool,
}

/// Hashes of the title, the date and the link of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Known(u32, u32, u32);

impl Known {
    fn of(entry: &Entry) -> Self {
        let short = |text: &str| u32::try_from(number(&[text]) & 0xFFFF_FFFF).unwrap_or_default();
        let link = link(entry).map_or("", Url::as_str);
        Self(short(title(entry)), short(&date_of(entry)), short(link))
    }

    /// Returns false if an entry of the same name is another one: nothing but the name is the same, or the link if that
    /// is the name.
    fn fits(&self, entry: &Entry) -> bool {
        let now = Self::of(entry);
        let has_id = entry.id.as_ref().is_some_and(|id| is_name(id));
        self.0 == now.0 || self.1 == now.1 || (has_id && self.2 == now.2)
    }
}

/// Returns true for two entries of one document that only have the name in common. Of one entry, Atom allows several
/// revisions.
fn are_distinct(one: &Entry, other: &Entry) -> bool {
    let is_revision = one.published == other.published && one.updated != other.updated;
    let is_by_id = one.id.as_ref().is_some_and(|id| is_name(id));
    link(one) != link(other)
        || (title(one) != title(other) && !(is_by_id && is_revision))
        || (!is_by_id && date_of(one) != date_of(other))
}

fn is_name(id: &str) -> bool {
    !NO_IDS.contains(&id.to_ascii_lowercase().as_str())
}

impl Memory {
    /// Returns true if the last document had ids that are shared.
    pub(super) fn has_shared_ids(&self) -> bool {
        self.uses_shared_ids
    }

    /// Notes the ids that are shared by entries of this document, and returns the entries' keys, in their order.
    pub(super) fn keys_of(&mut self, entries: &[Entry]) -> Vec<String> {
        let names: Vec<Option<String>> = entries.iter().map(name).collect();
        let mut shared: HashSet<String> = HashSet::new();
        let mut first: HashMap<&str, &Entry> = HashMap::new();
        for (name, entry) in names.iter().zip(entries) {
            let Some(name) = name else { continue };
            let other = *first.entry(name).or_insert(entry);
            let was_another = || {
                self.known
                    .get(&number(&[name]))
                    .is_some_and(|known| !known.fits(entry))
            };
            if are_distinct(other, entry) || was_another() {
                shared.insert(short(name));
            }
        }
        let stored: HashSet<&str> = self.shared.iter().map(String::as_str).collect();
        let mut uses_shared = false;
        let keys = names.iter().zip(entries).map(|(name, entry)| {
            let id = name.as_ref().filter(|name| {
                let name = short(name);
                !shared.contains(&name) && !stored.contains(&*name)
            });
            uses_shared |= name.is_some() && id.is_none();
            id.cloned().unwrap_or_else(|| content(entry))
        });
        let keys = keys.collect();
        let new = shared.into_iter().filter(|name| !stored.contains(&**name));
        let new: Vec<String> = new.collect();
        self.shared.extend(new);
        let surplus = self.shared.len().saturating_sub(MAX_SHARED);
        self.shared.drain(..surplus);
        self.uses_shared_ids = uses_shared;
        keys
    }

    /// Returns those of the entries that an earlier reading had under another id.
    ///
    /// `is_new` says which entries have unknown keys. An entry without a date is only recognised if no entry is known:
    /// two entries without a date may be equal by chance. Neither is one that is equal to a known one of the document.
    pub(super) fn recognise(&mut self, entries: &[Entry], is_new: &[bool]) -> Vec<bool> {
        let mut window: HashSet<u64> = self.window.iter().copied().collect();
        let all_are_new = is_new.iter().all(|is_new| *is_new);
        for (entry, _) in entries.iter().zip(is_new).filter(|(_, is_new)| !**is_new) {
            window.remove(&fingerprint(entry));
        }
        let found = entries.iter().zip(is_new).map(|(entry, is_new)| {
            let is_comparable = all_are_new || entry.time().is_some();
            *is_new && is_comparable && window.contains(&fingerprint(entry))
        });
        let found: Vec<bool> = found.collect();
        if is_new.contains(&true) {
            self.renews_ids = found.contains(&true);
        }
        found
    }

    /// Remembers the entries of a document that was read completely.
    pub(super) fn remember(&mut self, entries: &[Entry]) {
        let entries = &entries[..entries.len().min(MAX_WINDOW)];
        self.window = entries.iter().map(fingerprint).collect();
        let named = entries
            .iter()
            .filter_map(|entry| Some((number(&[&name(entry)?]), Known::of(entry))));
        self.known = named.collect();
    }
}

/// Returns the name of an entry in the feed: its id, else its link.
fn name(entry: &Entry) -> Option<String> {
    let id = entry.id.as_ref().filter(|id| is_name(id)).cloned();
    id.or_else(|| link(entry).map(|url| url.to_string()))
}

fn date_of(entry: &Entry) -> String {
    entry
        .time()
        .map_or_else(String::new, |time| time.to_string())
}

fn link(entry: &Entry) -> Option<&Url> {
    let links = entry.links.iter().filter(|link| link.rel != Rel::Itself);
    links.min_by_key(|link| link.rel).map(|link| &link.url)
}

/// A hash of what an entry says. A title alone may repeat ("Weekly thread"), and so may a summary.
fn content(entry: &Entry) -> String {
    let date = date_of(entry);
    let is_plain = date.is_empty() || title(entry).is_empty();
    let text = if is_plain { text(entry) } else { "" };
    let link = link(entry).map_or("", Url::as_str);
    hex::encode(&hash(&[title(entry), &date, text, link])[..16])
}

/// A short hash of what readers see of an entry, and of its address without the parts that hold sessions.
fn fingerprint(entry: &Entry) -> u64 {
    let address = link(entry).map_or_else(String::new, |url| {
        let path = url.path().split(';').next().unwrap_or_default();
        format!("{}{path}", url.host_str().unwrap_or_default())
    });
    // Links in the text may hold sessions too.
    let mut is_tag = false;
    let text = text(entry).chars().filter(|c| {
        is_tag |= *c == '<';
        let is_text = !is_tag;
        is_tag &= *c != '>';
        is_text
    });
    number(&[
        title(entry),
        &date_of(entry),
        &text.collect::<String>(),
        &address,
    ])
}

/// A hash that is exact as a number of any JSON parser.
fn number(parts: &[&str]) -> u64 {
    const BITS: u64 = (1 << 48) - 1;
    let mut short = [0; 8];
    short.copy_from_slice(&hash(parts)[..8]);
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
