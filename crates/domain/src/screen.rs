//! A customer's rules for leaving posts out of its Scans, regardless of the instructions.
//!
//! They belong to the customer: a compile never changes them, and posts are checked against them after the
//! instructions matched. An expired mute has no effect. Only `kinds` has its effect earlier: comments have
//! separate feeds, which a compile adds or leaves out.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Host;

use crate::{Issue, Timestamp, instructions, json::Object, text::serde_as_text};

pub const MAX_MUTES: usize = 200;
pub const MAX_LANGUAGES: usize = 20;
pub const MAX_SCANS_PER_DAY: u32 = 100_000;
const VALUE_CHARS: std::ops::RangeInclusive<usize> = 1..=200;

/// A Manager's rules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Screen {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mutes: Vec<Mute>,
    /// Posts in other languages are left out; if empty, all languages pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub languages: Vec<Language>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_scans_per_day: Option<u32>,
    #[serde(default, skip_serializing_if = "Kinds::is_default")]
    pub kinds: Kinds,
    #[serde(default, skip_serializing_if = "Duplicates::is_default")]
    pub duplicates: Duplicates,
}

/// Kinds of posts that count; at least one, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Kinds(Vec<PostKind>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum PostKind {
    Post,
    /// Comments on posts, if the platform has a feed for them.
    Comment,
}

impl PostKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Comment => "COMMENT",
        }
    }
}

impl Default for Kinds {
    fn default() -> Self {
        Self(vec![PostKind::Post])
    }
}

impl Kinds {
    /// Parses words from a table; words of a newer version are skipped.
    pub fn stored(words: &[String]) -> Self {
        let all = [PostKind::Post, PostKind::Comment];
        let kinds: Vec<PostKind> = all
            .into_iter()
            .filter(|kind| words.iter().any(|word| word == kind.as_str()))
            .collect();
        if kinds.is_empty() {
            return Self::default();
        }
        Self(kinds)
    }

    pub fn has(&self, kind: PostKind) -> bool {
        self.0.contains(&kind)
    }

    pub fn iter(&self) -> impl Iterator<Item = PostKind> {
        self.0.iter().copied()
    }

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Handling of a post with the same content as an earlier one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Duplicates {
    /// Make a separate Scan.
    #[default]
    Keep,
    /// Add another place to the earlier one's Scan.
    Collapse,
}

impl Duplicates {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "KEEP",
            Self::Collapse => "COLLAPSE",
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Posts to leave out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Mute {
    #[serde(rename = "type")]
    pub mute_type: MuteType,
    pub value: String,
    /// End of the mute; absent for a permanent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire_time: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum MuteType {
    /// Author by id, name or address.
    Author,
    /// Subforum by id, name or address.
    Subforum,
    /// Host of the post's address, and its subdomains.
    Site,
    /// Word or phrase in the title or text.
    Term,
}

/// A detectable language, by its ISO 639-1 code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Language(&'static str);

impl Language {
    /// The detectable languages.
    pub const CODES: &'static [&'static str] = &[
        "af", "ak", "am", "ar", "az", "be", "bg", "bn", "ca", "cs", "cy", "da", "de", "el", "en",
        "eo", "es", "et", "fa", "fi", "fr", "gu", "he", "hi", "hr", "hu", "hy", "id", "it", "ja",
        "jv", "ka", "km", "kn", "ko", "la", "lt", "lv", "mk", "ml", "mr", "my", "ne", "nl", "no",
        "or", "pa", "pl", "pt", "ro", "ru", "si", "sk", "sl", "sn", "sr", "sv", "ta", "te", "th",
        "tk", "tl", "tr", "uk", "ur", "uz", "vi", "yi", "zh", "zu",
    ];

    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseLanguageError {
    #[error("not a language tag")]
    Malformed,
    #[error("not a language that can be detected")]
    Unknown,
}

/// Parses BCP 47 tags. Only the language counts: `pt-BR` is `pt`.
impl FromStr for Language {
    type Err = ParseLanguageError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let sound = |part: &str| {
            (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric())
        };
        let mut parts = text.split('-');
        let language = parts.next().unwrap_or_default();
        let is_tag = matches!(language.len(), 2 | 3)
            && language.bytes().all(|b| b.is_ascii_alphabetic())
            && text.len() <= 35
            && parts.all(sound);
        if !is_tag {
            return Err(ParseLanguageError::Malformed);
        }
        let language = match language.to_ascii_lowercase().as_str() {
            "nb" | "nn" => "no".to_owned(),
            other => other.to_owned(),
        };
        let at = Self::CODES.binary_search(&language.as_str());
        at.map(|at| Self(Self::CODES[at]))
            .ok()
            .ok_or(ParseLanguageError::Unknown)
    }
}

serde_as_text!(Language);

/// Parses the optional list `mutes`; `None` after an issue was reported.
pub(crate) fn mutes(fields: &Object<'_>) -> Option<Vec<Mute>> {
    let Some(value) = fields.take("mutes") else {
        return Some(Vec::new());
    };
    let items = fields.array("mutes", Some(value))?;
    if items.len() > MAX_MUTES {
        fields.report("mutes", Issue::TooMany);
        return None;
    }
    let mut mutes: Vec<Mute> = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let path = fields.path(&format!("mutes[{at}]"));
        let Some(mute) = Object::at(item, path, fields.issues()).and_then(mute) else {
            continue;
        };
        let twice = mutes
            .iter()
            .any(|one| (one.mute_type, &one.value) == (mute.mute_type, &mute.value));
        if twice {
            fields.report(&format!("mutes[{at}]"), Issue::Duplicate);
        } else {
            mutes.push(mute);
        }
    }
    (mutes.len() == items.len()).then_some(mutes)
}

fn mute(object: Object<'_>) -> Option<Mute> {
    let mute_type = object.word::<MuteType>("type", object.require("type"));
    let given = object.require("value");
    let value = match mute_type {
        Some(MuteType::Term) => {
            given.and_then(|value| or_report(&object, instructions::term(value)))
        }
        Some(MuteType::Site) => object
            .trimmed("value", given, VALUE_CHARS)
            .and_then(|text| or_report(&object, host(&text))),
        _ => object.trimmed("value", given, VALUE_CHARS),
    };
    let given = object.take("expireTime");
    let expire_time = object.text("expireTime", given).and_then(|text| {
        let time: Option<Timestamp> = text.parse().ok();
        if time.is_none() {
            object.report("expireTime", Issue::InvalidFormat);
        }
        time
    });
    let sound = given.is_some() == expire_time.is_some();
    object.finish();
    Some(Mute {
        mute_type: mute_type?,
        value: value?,
        expire_time: sound.then_some(expire_time)?,
    })
}

fn or_report<T>(object: &Object<'_>, result: Result<T, Issue>) -> Option<T> {
    result.map_err(|issue| object.report("value", issue)).ok()
}

/// A host in the same form as in addresses.
fn host(text: &str) -> Result<String, Issue> {
    match Host::parse(text) {
        Ok(Host::Domain(host)) if !host.is_empty() => Ok(host.trim_end_matches('.').to_owned()),
        Ok(Host::Ipv4(address)) => Ok(address.to_string()),
        _ => Err(Issue::InvalidFormat),
    }
}

/// Parses the optional list `languages`.
pub(crate) fn languages(fields: &Object<'_>) -> Option<Vec<Language>> {
    let Some(value) = fields.take("languages") else {
        return Some(Vec::new());
    };
    let items = fields.array("languages", Some(value))?;
    if items.len() > MAX_LANGUAGES {
        fields.report("languages", Issue::TooMany);
        return None;
    }
    let mut languages: Vec<Language> = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let language = language(item).and_then(|language| {
            let twice = languages.contains(&language);
            (!twice).then_some(language).ok_or(Issue::Duplicate)
        });
        match language {
            Ok(language) => languages.push(language),
            Err(issue) => fields.report(&format!("languages[{at}]"), issue),
        }
    }
    (languages.len() == items.len()).then_some(languages)
}

fn language(item: &Value) -> Result<Language, Issue> {
    let text = item.as_str().ok_or(Issue::InvalidType)?;
    text.trim().parse().map_err(|error| match error {
        ParseLanguageError::Malformed => Issue::InvalidFormat,
        ParseLanguageError::Unknown => Issue::InvalidEnum,
    })
}

/// Parses the optional number `maxScansPerDay`; `Some(None)` if it is not given.
pub(crate) fn max_scans_per_day(fields: &Object<'_>) -> Option<Option<u32>> {
    match fields.take("maxScansPerDay") {
        None => Some(None),
        Some(value) => fields
            .whole_number("maxScansPerDay", value, 1..=MAX_SCANS_PER_DAY)
            .map(Some),
    }
}

/// Parses the optional list `kinds`.
pub(crate) fn kinds(fields: &Object<'_>) -> Option<Kinds> {
    let Some(value) = fields.take("kinds") else {
        return Some(Kinds::default());
    };
    let items = fields.array("kinds", Some(value))?;
    match items.len() {
        0 => fields.report("kinds", Issue::TooShort),
        1 | 2 => {}
        _ => {
            fields.report("kinds", Issue::TooMany);
            return None;
        }
    }
    let mut kinds = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let known = || PostKind::deserialize(item).map_err(|_unknown| Issue::InvalidEnum);
        let kind = item.as_str().ok_or(Issue::InvalidType);
        let kind = kind.and_then(|_| known()).and_then(|kind| {
            let twice = kinds.contains(&kind);
            (!twice).then_some(kind).ok_or(Issue::Duplicate)
        });
        match kind {
            Ok(kind) => kinds.push(kind),
            Err(issue) => fields.report(&format!("kinds[{at}]"), issue),
        }
    }
    kinds.sort_unstable();
    (!kinds.is_empty() && kinds.len() == items.len()).then_some(Kinds(kinds))
}

/// Parses the optional field `duplicates`.
pub(crate) fn duplicates(fields: &Object<'_>) -> Option<Duplicates> {
    match fields.take("duplicates") {
        None => Some(Duplicates::default()),
        given => fields.word("duplicates", given),
    }
}

/// Parses all fields of the screen.
pub(crate) fn screen(fields: &Object<'_>) -> Option<Screen> {
    let (mutes, languages) = (mutes(fields), languages(fields));
    let max_scans_per_day = max_scans_per_day(fields);
    let (kinds, duplicates) = (kinds(fields), duplicates(fields));
    Some(Screen {
        mutes: mutes?,
        languages: languages?,
        max_scans_per_day: max_scans_per_day?,
        kinds: kinds?,
        duplicates: duplicates?,
    })
}

/// Parses mutes from a table. Unknown ones of a newer version are skipped and counted, so that one does not
/// disable the others.
pub fn stored_mutes(json: &Value) -> (Vec<Mute>, usize) {
    let items = json.as_array().map(Vec::as_slice).unwrap_or_default();
    let mutes: Vec<Mute> = items
        .iter()
        .filter_map(|item| Mute::deserialize(item).ok())
        .collect();
    let unknown = items.len() - mutes.len();
    (mutes, unknown)
}

#[cfg(test)]
mod tests;
