//! Fields of a resource for filtering and ordering its lists, and their values.

use crate::{Issue, Timestamp};

/// A field for filtering and ordering the lists of a resource, named as in the JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
}

/// Kind of a field. It determines the allowed operators and literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    Time,
    Bool,
    Number,
    /// A list of texts, which can be searched but not ordered by.
    Texts,
    /// A fixed set of words.
    Word(&'static [&'static str]),
}

impl Kind {
    pub fn takes(self, op: Op) -> bool {
        match self {
            Self::Text => true,
            Self::Texts => op == Op::Has,
            Self::Time | Self::Number => op != Op::Has,
            Self::Bool | Self::Word(_) => matches!(op, Op::Equal | Op::NotEqual),
        }
    }

    /// # Errors
    /// The issue, if `text` is not a value of this kind.
    pub fn literal(self, text: &str) -> Result<Literal, Issue> {
        let literal = match self {
            Self::Text | Self::Texts => Some(Literal::Text(text.to_owned())),
            Self::Time => text.parse().ok().map(Literal::Time),
            Self::Bool => text.parse().ok().map(Literal::Bool),
            Self::Number => text
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite())
                .map(Literal::Number),
            Self::Word(words) => {
                let known = words
                    .contains(&text)
                    .then(|| Literal::Text(text.to_owned()));
                return known.ok_or(Issue::InvalidEnum);
            }
        };
        literal.ok_or(Issue::InvalidFormat)
    }

    pub fn describe(self) -> &'static str {
        match self {
            Self::Text | Self::Texts => "text in double quotes",
            Self::Time => "an rfc 3339 timestamp in double quotes",
            Self::Bool => "true or false",
            Self::Number => "a number",
            Self::Word(_) => "one of a closed set of words",
        }
    }
}

pub(crate) const fn text(name: &'static str) -> Field {
    Field {
        name,
        kind: Kind::Text,
    }
}

pub(crate) const fn time(name: &'static str) -> Field {
    Field {
        name,
        kind: Kind::Time,
    }
}

pub(crate) const fn word(name: &'static str, words: &'static [&'static str]) -> Field {
    Field {
        name,
        kind: Kind::Word(words),
    }
}

pub(crate) const fn number(name: &'static str) -> Field {
    Field {
        name,
        kind: Kind::Number,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// Case-insensitive substring.
    Has,
}

/// A value with the kind of its field.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    Text(String),
    Time(Timestamp),
    Bool(bool),
    Number(f64),
}

/// The value of `field` in the JSON of an item, for the position in a page token.
pub fn value_of(item: &serde_json::Value, field: &Field) -> Option<Literal> {
    let mut value = item;
    for part in field.name.split('.') {
        value = value.get(part)?;
    }
    Some(match (field.kind, value) {
        (Kind::Time, serde_json::Value::String(text)) => {
            Literal::Time(text.parse::<Timestamp>().ok()?)
        }
        (_, serde_json::Value::String(text)) => Literal::Text(text.clone()),
        (_, serde_json::Value::Bool(flag)) => Literal::Bool(*flag),
        (_, serde_json::Value::Number(number)) => Literal::Number(number.as_f64()?),
        _ => return None,
    })
}
