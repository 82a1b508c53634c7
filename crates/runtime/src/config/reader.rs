//! Takes settings out of the tree by key, and collects errors and unknown keys.
//!
//! Reading a setting also documents it: reading an empty tree yields the reference.

use std::{collections::BTreeSet, ops::RangeInclusive, path::Path};

use secrecy::zeroize::Zeroizing;
use toml::Value;

use super::{
    error::Problem,
    setting::{OUT_OF_RANGE, Setting},
    tree::{Given, PREFIX, Raw, Tree, read_bounded},
};

/// Maximum edit distance between two keys for a typo.
const MAX_SLIPS: usize = 3;

/// The only list of tables.
const PLATFORMS: &str = "platforms";

pub(super) struct Reader {
    tree: Tree,
    used: BTreeSet<String>,
    pub(super) entries: Vec<Entry>,
    pub(super) problems: Vec<Problem>,
}

/// The entries of the reference, in order.
#[derive(Debug)]
pub(super) enum Entry {
    Section {
        path: String,
        doc: String,
    },
    Key {
        key: String,
        doc: String,
        form: String,
        default: String,
        within: Option<String>,
        required: bool,
        secret: bool,
    },
}

impl Reader {
    pub(super) fn new(tree: Tree) -> Self {
        Self {
            tree,
            used: BTreeSet::new(),
            entries: Vec::new(),
            problems: Vec::new(),
        }
    }

    pub(super) fn section(&mut self, path: &str, doc: &str) {
        self.entries.push(Entry::Section {
            path: path.to_owned(),
            doc: doc.trim().to_owned(),
        });
    }

    /// Returns true if anything below `path` was set.
    pub(super) fn has_section(&self, path: &str) -> bool {
        self.tree
            .keys()
            .any(|key| lies_below(key, path) || key == path)
    }

    /// The indexes `path[0]`, `path[1]`, … that were set; `None` if the list is absent.
    pub(super) fn items(&self, path: &str) -> Option<BTreeSet<usize>> {
        let indexes = self.tree.keys().filter_map(|key| {
            let (index, _) = key.strip_prefix(path)?.strip_prefix('[')?.split_once(']')?;
            index.parse::<usize>().ok()
        });
        let indexes: BTreeSet<_> = indexes.collect();
        (!indexes.is_empty() || self.tree.contains_key(path)).then_some(indexes)
    }

    /// Replaces `slot` if the key has a valid value.
    pub(super) fn read<T: Setting>(
        &mut self,
        key: &str,
        doc: &str,
        slot: &mut T,
        within: Option<Within<T>>,
    ) {
        self.document::<T>(key, doc, slot.show(), within.as_ref(), false);
        let Some((value, origin)) = self.take::<T>(key, within.as_ref()) else {
            return;
        };
        match within.filter(|within| !(within.holds)(&value)) {
            None => *slot = value,
            Some(within) => {
                self.problem(key, within.reason(), origin);
            }
        }
    }

    /// A key of an optional part: `path.name`, which is required if the part is `given`.
    pub(super) fn required<T: Setting>(
        &mut self,
        path: &str,
        name: &str,
        doc: &str,
        given: bool,
    ) -> Option<T> {
        let key = format!("{path}.{name}");
        self.document::<T>(&key, doc, String::new(), None, true);
        let absent = given && !self.was_given::<T>(&key);
        if absent {
            self.problems.push(Problem::new(&key, "is required"));
        }
        self.take(&key, None).map(|(value, _)| value)
    }

    pub(super) fn optional<T: Setting>(&mut self, path: &str, name: &str, doc: &str) -> Option<T> {
        let key = format!("{path}.{name}");
        self.document::<T>(&key, doc, String::new(), None, false);
        self.take(&key, None).map(|(value, _)| value)
    }

    /// Reports an error for `key`, with its origin.
    pub(super) fn reject(&mut self, key: &str, reason: impl Into<String>) {
        let origin = self.tree.get(key).map(|given| given.origin.clone());
        self.problem(key, reason, origin.unwrap_or_default());
    }

    /// Reports a variable that would set a key if it had two underscores where the key has a dot.
    ///
    /// Other names with our prefix are ignored: Kubernetes creates such variables for every service.
    pub(super) fn reject_misspelt(&mut self, known: &[Entry], variable: &str) {
        let meant = known.iter().find_map(|entry| match entry {
            Entry::Key { key, secret, .. } => meant_by(variable, key, *secret),
            Entry::Section { .. } => None,
        });
        if let Some((key, name)) = meant {
            let reason = format!("must be spelt {name}, with two underscores between its parts");
            self.problem(&key, reason, format!("environment variable {variable}"));
        }
    }

    /// Ignores everything else below `path`.
    pub(super) fn ignore_below(&mut self, path: &str) {
        let below = self.tree.keys().filter(|key| lies_below(key, path));
        self.used.extend(below.cloned());
    }

    /// Reports every unknown key, and returns the documentation and the errors.
    pub(super) fn finish(mut self) -> (Vec<Entry>, Vec<Problem>) {
        let left_over: Vec<_> = self
            .tree
            .iter()
            .filter(|(key, given)| !self.used.contains(*key) && !self.is_empty_section(key, given))
            .map(|(key, given)| (key.clone(), given.origin.clone()))
            .collect();
        for (key, origin) in left_over {
            let reason = self.why_unknown(&key);
            self.problem(&key, reason, origin);
        }
        (self.entries, self.problems)
    }

    fn document<T: Setting>(
        &mut self,
        key: &str,
        doc: &str,
        default: String,
        within: Option<&Within<T>>,
        required: bool,
    ) {
        self.entries.push(Entry::Key {
            key: key.to_owned(),
            doc: doc.trim().to_owned(),
            form: T::describe(),
            default,
            within: within.map(|within| within.shown.clone()),
            required,
            secret: T::SECRET,
        });
    }

    fn was_given<T: Setting>(&self, key: &str) -> bool {
        self.tree.contains_key(key) || (T::SECRET && self.tree.contains_key(&format!("{key}_file")))
    }

    /// The value and its origin; an unreadable value is reported and skipped.
    fn take<T: Setting>(&mut self, key: &str, within: Option<&Within<T>>) -> Option<(T, String)> {
        let plain = self.mark(key);
        let file = if T::SECRET {
            self.mark(&format!("{key}_file"))
        } else {
            None
        };
        let (given, is_file) = match (plain, file) {
            (None, None) => return None,
            (Some(plain), None) => (plain, false),
            (None, Some(file)) => (file, true),
            // A variable overrides the file's other spelling; two in the same source are a mistake.
            (Some(plain), Some(file)) if plain.rank > file.rank => (plain, false),
            (Some(plain), Some(file)) if plain.rank < file.rank => (file, true),
            (Some(plain), Some(_)) => {
                let reason = format!("is given twice, here and as `{key}_file`");
                self.problem(key, reason, plain.origin);
                return None;
            }
        };
        let parsed = if is_file {
            parse_file::<T>(&given.value)
        } else {
            match &given.value {
                Raw::Toml(value) => T::from_toml(value),
                Raw::Text(text) => T::from_text(text),
            }
        };
        match parsed {
            Ok(value) => Some((value, given.origin)),
            Err(reason) => {
                let reason = match within {
                    Some(within) if reason == OUT_OF_RANGE => within.reason(),
                    _ => reason,
                };
                let suffix = if is_file { "_file" } else { "" };
                self.problem(&format!("{key}{suffix}"), reason, given.origin);
                None
            }
        }
    }

    fn mark(&mut self, key: &str) -> Option<Given> {
        let given = self.tree.get(key)?.clone();
        self.used.insert(key.to_owned());
        Some(given)
    }

    fn problem(&mut self, key: &str, reason: impl Into<String>, origin: String) {
        self.problems.push(Problem {
            key: key.to_owned(),
            reason: reason.into(),
            origin: (!origin.is_empty()).then_some(origin),
        });
    }

    fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Key { key, .. } => Some(key.as_str()),
            Entry::Section { .. } => None,
        })
    }

    fn is_section(&self, path: &str) -> bool {
        path == PLATFORMS || self.keys().any(|key| lies_below(key, path))
    }

    fn is_empty_section(&self, key: &str, given: &Given) -> bool {
        let empty = match &given.value {
            Raw::Toml(Value::Table(table)) => table.is_empty(),
            Raw::Toml(Value::Array(items)) => items.is_empty() && key == PLATFORMS,
            _ => false,
        };
        empty && self.is_section(key)
    }

    fn why_unknown(&self, key: &str) -> String {
        if self.is_section(key) {
            return "is a section, not a value".to_owned();
        }
        if let Some(parent) = self.keys().find(|known| lies_below(key, known)) {
            return format!("unknown key, because `{parent}` is a value, not a section");
        }
        let nearest = self
            .keys()
            .map(|known| (strsim::osa_distance(known, key), known))
            .min()
            .filter(|(slips, _)| *slips <= MAX_SLIPS);
        match nearest {
            Some((_, known)) => format!("unknown key; did you mean `{known}`?"),
            None => "unknown key".to_owned(),
        }
    }
}

/// Bounds of a setting.
pub(super) struct Within<T> {
    shown: String,
    holds: Box<dyn Fn(&T) -> bool>,
}

impl<T> Within<T> {
    fn reason(&self) -> String {
        format!("must lie between {}", self.shown)
    }
}

impl<T: Setting + PartialOrd + 'static> Within<T> {
    pub(super) fn of(range: RangeInclusive<T>) -> Self {
        Self {
            shown: format!("{} and {}", range.start().show(), range.end().show()),
            holds: Box::new(move |value| range.contains(value)),
        }
    }
}

/// The key and its variable, if `variable` differs from it only by single underscores.
fn meant_by(variable: &str, key: &str, secret: bool) -> Option<(String, String)> {
    let index = variable
        .strip_prefix("EARSHOT_PLATFORMS_")
        .and_then(|rest| rest.split('_').next())
        .filter(|index| index.parse::<u16>().is_ok());
    let key = match index {
        Some(index) => key.replace("[0]", &format!("[{index}]")),
        None => key.to_owned(),
    };
    let keys = [Some(key.clone()), secret.then(|| format!("{key}_file"))];
    keys.into_iter().flatten().find_map(|key| {
        let path = key.replace('[', ".").replace(']', "").to_ascii_uppercase();
        let single = format!("{PREFIX}{}", path.replace('.', "_"));
        let right = format!("{PREFIX}{}", path.replace('.', "__"));
        (variable.to_ascii_uppercase() == single && single != right).then_some((key, right))
    })
}

fn lies_below(key: &str, path: &str) -> bool {
    key.strip_prefix(path)
        .is_some_and(|rest| rest.starts_with(['.', '[']))
}

fn parse_file<T: Setting>(path: &Raw) -> Result<T, String> {
    let path = match path {
        Raw::Toml(Value::String(path)) | Raw::Text(path) => path,
        Raw::Toml(_) => return Err("expected the path of a file".to_owned()),
    };
    let text = Zeroizing::new(
        read_bounded(Path::new(path)).map_err(|reason| format!("`{path}`: {reason}"))?,
    );
    T::from_text(text.trim()).map_err(|reason| format!("`{path}`: {reason}"))
}
