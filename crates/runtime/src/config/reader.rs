//! Takes settings out of the tree by key, and collects errors and unknown keys.
//!
//! Reading a setting also documents it: reading an empty tree yields the reference.

use std::{collections::BTreeSet, fmt::Write, ops::RangeInclusive, path::Path};

use secrecy::zeroize::Zeroizing;
use toml::Value;

use super::{
    error::Problem,
    setting::{OUT_OF_RANGE, Setting},
    tree::{Given, PREFIX, Tree, read_bounded},
};

/// Maximum edit distance between two keys for a typo.
const MAX_SLIPS: usize = 3;

/// The only list of tables.
const PLATFORMS: &str = "platforms";

#[derive(Default)]
pub(super) struct Reader {
    tree: Tree,
    used: BTreeSet<String>,
    /// Each key that was looked for.
    known: Vec<String>,
    /// Reference page of these keys, in Markdown.
    pub(super) page: String,
    problems: Vec<Problem>,
}

impl Reader {
    pub(super) fn new(tree: Tree) -> Self {
        Self {
            tree,
            ..Self::default()
        }
    }

    /// Starts a section of the reference; `doc` is empty if the settings belong to the present one.
    pub(super) fn section(&mut self, path: &str, doc: &str) {
        let header = match path {
            "platforms[0]" => "[[platforms]]".to_owned(),
            _ => format!("[{path}]"),
        };
        if !doc.is_empty() {
            let doc = doc.trim();
            let table = "| Key | Value | Default | |\n|---|---|---|---|";
            let _ = writeln!(self.page, "\n## `{header}`\n\n{doc}\n\n{table}");
        }
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

    /// The value of `path.name`, or its default if it is absent or wrong. Without a default it is required if
    /// anything else of `path` is set.
    pub(super) fn read<T: Setting>(
        &mut self,
        path: &str,
        name: &str,
        doc: &str,
        default: Option<T>,
        within: Option<Within<T>>,
    ) -> Option<T> {
        let key = format!("{path}.{name}");
        self.document(name, doc, default.as_ref(), within.as_ref());
        self.known.push(key.clone());
        if T::SECRET {
            self.known.push(format!("{key}_file"));
        }
        let is_required =
            default.is_none() && (self.tree.keys()).any(|key| lies_below(key, path) || key == path);
        match self.take(&key, within.as_ref()) {
            Ok(Some(value)) => Some(value),
            Ok(None) if is_required => {
                self.problems.push(Problem::new(key, "is required"));
                None
            }
            Ok(None) => default,
            Err(problem) => {
                self.problems.push(problem);
                default
            }
        }
    }

    fn document<T: Setting>(
        &mut self,
        name: &str,
        doc: &str,
        default: Option<&T>,
        within: Option<&Within<T>>,
    ) {
        let within = within.map_or(String::new(), |within| {
            format!(", between {}", within.shown)
        });
        let secret = if T::SECRET { ", *secret*" } else { "" };
        let default = match default.map(Setting::show) {
            None => "required".to_owned(),
            Some(shown) if shown.is_empty() => shown,
            Some(shown) => format!("`{shown}`"),
        };
        let (form, doc) = (T::describe(), doc.trim());
        let _ = writeln!(
            self.page,
            "| `{name}` | {form}{within}{secret} | {default} | {doc} |"
        );
    }

    fn take<T: Setting>(
        &mut self,
        key: &str,
        within: Option<&Within<T>>,
    ) -> Result<Option<T>, Problem> {
        let file_key = format!("{key}_file");
        let plain = self.mark(key);
        let file = if T::SECRET {
            self.mark(&file_key)
        } else {
            None
        };
        let (given, is_file) = match (plain, file) {
            (None, None) => return Ok(None),
            // A variable overrides the file's other spelling; two in the same source are a mistake.
            (Some(plain), Some(file)) if plain.is_variable == file.is_variable => {
                let reason = format!("is given twice, here and as `{file_key}`");
                return Err(plain.problem(key, reason));
            }
            (Some(plain), Some(file)) if !plain.is_variable => (file, true),
            (Some(plain), _) => (plain, false),
            (None, Some(file)) => (file, true),
        };
        let value = match (is_file, &given.value) {
            (true, path) => parse_file(path),
            (false, Value::String(text)) if given.is_variable => T::from_text(text),
            (false, value) => T::from_toml(value),
        };
        let value = match (value, within) {
            (Ok(value), Some(within)) if !(within.holds)(&value) => Err(OUT_OF_RANGE.to_owned()),
            (value, _) => value,
        };
        value.map(Some).map_err(|reason| {
            let key = if is_file { &file_key } else { key };
            match within {
                Some(within) if reason == OUT_OF_RANGE => {
                    given.problem(key, format!("must lie between {}", within.shown))
                }
                _ => given.problem(key, reason),
            }
        })
    }

    fn mark(&mut self, key: &str) -> Option<Given> {
        self.used.insert(key.to_owned());
        self.tree.get(key).cloned()
    }

    /// Reports an error for `key`, with its origin.
    pub(super) fn reject(&mut self, key: &str, reason: impl Into<String>) {
        let problem = match self.tree.get(key) {
            Some(given) => given.problem(key, reason),
            None => Problem::new(key, reason),
        };
        self.problems.push(problem);
    }

    /// Ignores everything else below `path`.
    pub(super) fn ignore_below(&mut self, path: &str) {
        let below = self.tree.keys().filter(|key| lies_below(key, path));
        self.used.extend(below.cloned());
    }

    /// Reports a variable that would set one of the keys of `all` if it had two underscores where the key has a
    /// dot.
    ///
    /// Other names with our prefix are ignored: Kubernetes creates such variables for every service.
    pub(super) fn reject_misspelt(&mut self, all: &Self, variable: &str) {
        if let Some((key, name)) = all.known.iter().find_map(|key| meant_by(variable, key)) {
            self.problems.push(Problem {
                key,
                reason: format!("must be spelt {name}, with two underscores between its parts"),
                origin: Some(format!("environment variable {variable}")),
            });
        }
    }

    /// Reports every unknown key, and returns all errors.
    pub(super) fn finish(mut self) -> Vec<Problem> {
        let unknown = self
            .tree
            .iter()
            .filter(|(key, given)| !self.used.contains(*key) && !self.is_empty_section(key, given))
            .map(|(key, given)| given.problem(key, self.why_unknown(key)));
        let unknown: Vec<_> = unknown.collect();
        self.problems.extend(unknown);
        self.problems
    }

    fn is_section(&self, path: &str) -> bool {
        path == PLATFORMS || self.known.iter().any(|key| lies_below(key, path))
    }

    fn is_empty_section(&self, key: &str, given: &Given) -> bool {
        let empty = match &given.value {
            Value::Table(table) => table.is_empty(),
            Value::Array(items) => items.is_empty() && key == PLATFORMS,
            _ => false,
        };
        empty && self.is_section(key)
    }

    fn why_unknown(&self, key: &str) -> String {
        if self.is_section(key) {
            return "is a section, not a value".to_owned();
        }
        if let Some(parent) = self.known.iter().find(|known| lies_below(key, known)) {
            return format!("unknown key, because `{parent}` is a value, not a section");
        }
        let distances = self
            .known
            .iter()
            .map(|known| (strsim::osa_distance(known, key), known));
        match distances.min() {
            Some((..=MAX_SLIPS, known)) => format!("unknown key; did you mean `{known}`?"),
            _ => "unknown key".to_owned(),
        }
    }
}

impl Given {
    fn problem(&self, key: &str, reason: impl Into<String>) -> Problem {
        Problem {
            key: key.to_owned(),
            reason: reason.into(),
            origin: Some(self.origin.clone()),
        }
    }
}

/// Bounds of a setting.
pub(super) struct Within<T> {
    shown: String,
    holds: Box<dyn Fn(&T) -> bool>,
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
fn meant_by(variable: &str, key: &str) -> Option<(String, String)> {
    let index = variable
        .strip_prefix("EARSHOT_PLATFORMS_")
        .and_then(|rest| rest.split('_').next())
        .filter(|index| index.parse::<u16>().is_ok());
    let key = key.replace("[0]", &format!("[{}]", index.unwrap_or("0")));
    let path = key.replace('[', ".").replace(']', "").to_ascii_uppercase();
    let single = format!("{PREFIX}{}", path.replace('.', "_"));
    let right = format!("{PREFIX}{}", path.replace('.', "__"));
    variable
        .eq_ignore_ascii_case(&single)
        .then_some((key, right))
}

fn lies_below(key: &str, path: &str) -> bool {
    key.strip_prefix(path)
        .is_some_and(|rest| rest.starts_with(['.', '[']))
}

fn parse_file<T: Setting>(path: &Value) -> Result<T, String> {
    let path = path.as_str().ok_or("expected the path of a file")?;
    read_bounded(Path::new(path))
        .map(Zeroizing::new)
        .and_then(|text| T::from_text(text.trim()))
        .map_err(|reason| format!("`{path}`: {reason}"))
}

/// Structs of settings. Their doc comments are the reference. A setting without a default is required as soon as
/// another one of its struct is set.
macro_rules! settings {
    ($(
        $(#[doc = $about:literal])*
        $vis:vis struct $name:ident $(: $derive:ident)? {
            $(
                $(#[doc = $doc:literal])*
                pub $field:ident: $type:ty $(= $default:expr)? $(, within $range:expr)?;
            )*
            $(and $(#[doc = $sub_doc:literal])* pub $sub:ident: Option<$sub_type:ident>;)*
        }
    )*) => {$(
        $(#[doc = $about])*
        #[derive(Debug, Clone $(, $derive)?)]
        $vis struct $name {
            $($(#[doc = $doc])* pub $field: $type,)*
            $($(#[doc = $sub_doc])* pub $sub: Option<$sub_type>,)*
        }

        impl $name {
            /// The values of `base` replace the defaults. `None` if a required setting is absent or wrong.
            pub(super) fn read(reader: &mut Reader, path: &str, base: Option<&Self>) -> Option<Self> {
                reader.section(path, concat!($($about,)* ""));
                $(
                    let default = base.map(|base| base.$field.clone())$(.or(Some($default)))?;
                    let within = None$(.or(Some(Within::of($range))))?;
                    let doc = concat!($($doc,)* "");
                    let $field = reader.read(path, stringify!($field), doc, default, within);
                )*
                $(
                    let section = format!("{path}.{}", stringify!($sub));
                    let $sub = $sub_type::read(reader, &section, None)
                        .or_else(|| base.and_then(|base| base.$sub.clone()));
                )*
                Some(Self { $($field: $field?,)* $($sub,)* })
            }
        }
    )*};
}

pub(super) use settings;
