//! Canaries: words that name their account and the field they were written to.
//!
//! A canary is `content` or `secret`, the account's mark, the kind of field, and a number: `contentoulianickname17` is a
//! nickname of account A. They have letters and digits alone, so that no encoding, word splitting or case folding hides
//! them. Both first parts are needed, because `ouli` occurs in words, and contains letters that no id of the service has.

/// One of the two accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    A,
    B,
}

impl Side {
    pub(super) const BOTH: [Self; 2] = [Self::A, Self::B];

    pub(super) fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    pub(super) fn index(self) -> usize {
        match self {
            Self::A => 0,
            Self::B => 1,
        }
    }

    fn mark(self) -> &'static str {
        match self {
            Self::A => "oulia",
            Self::B => "oulib",
        }
    }

    /// Returns a canary that other people of the same account may see.
    pub(super) fn content(self, kind: &str, number: u64) -> String {
        format!("content{}{kind}{number}", self.mark())
    }

    /// Returns a canary that must not be in logs, traces and metrics either.
    pub(super) fn secret(self, kind: &str, number: u64) -> String {
        format!("secret{}{kind}{number}", self.mark())
    }
}

/// A canary that was found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Canary<'a> {
    pub(super) side: Side,
    pub(super) is_secret: bool,
    /// The whole word.
    pub(super) word: &'a str,
}

impl Canary<'_> {
    /// Returns the kind of field it was written to.
    pub(super) fn kind(&self) -> &str {
        let first = if self.is_secret { "secret" } else { "content" };
        let kind = &self.word[first.len() + self.side.mark().len()..];
        kind.trim_end_matches(|c: char| c.is_ascii_digit())
    }
}

/// Returns the canaries in a text of lower-case letters.
pub(super) fn find(text: &str) -> Vec<Canary<'_>> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("ouli") {
        let before = &text[..at];
        let is_secret = before.ends_with("secret");
        let side = Side::BOTH
            .into_iter()
            .find(|side| text[at..].starts_with(side.mark()));
        let Some(side) = side.filter(|_| is_secret || before.ends_with("content")) else {
            continue;
        };
        let start = at - if is_secret { 6 } else { 7 };
        let rest = &text[start..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric());
        found.push(Canary {
            side,
            is_secret,
            word: &rest[..end.unwrap_or(rest.len())],
        });
    }
    found
}

/// Returns the resource ids in a text: lower-case ULIDs that stand alone.
pub(super) fn ids(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| {
        word.len() == 26
            && word.as_bytes()[0].is_ascii_digit()
            && word.bytes().all(|byte| !b"ilou".contains(&byte))
    })
}
