//! Splits a filter into words, operators and quoted text, with the column of each.

use std::fmt;

use crate::{Issue, field::Op};

/// An error in a filter, and its column (from 1, in characters).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) issue: Issue,
    pub(super) column: usize,
    pub(super) reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A field, a number, or a bare word, keywords included.
    Word(&'a str),
    /// A literal in double quotes, unescaped.
    Text(String),
    Op(Op),
    Minus,
    Open,
    Close,
}

/// Maximum length of a word in a message.
const MAX_SHOWN_CHARS: usize = 40;

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => match word.char_indices().nth(MAX_SHOWN_CHARS) {
                Some((end, _)) => write!(f, "`{}…`", &word[..end]),
                None => write!(f, "`{word}`"),
            },
            Self::Text(_) => f.write_str("quoted text"),
            Self::Op(_) => f.write_str("an operator"),
            Self::Minus => f.write_str("`-`"),
            Self::Open => f.write_str("`(`"),
            Self::Close => f.write_str("`)`"),
        }
    }
}

pub(super) struct Lexer<'a> {
    text: &'a str,
    /// Byte offsets: start of the next token, and start of the last one.
    position: usize,
    start: usize,
    peeked: Option<(Option<Token<'a>>, usize, usize)>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            position: 0,
            start: 0,
            peeked: None,
        }
    }

    /// The column of the last token, from 1, in characters.
    pub(super) fn column(&self) -> usize {
        self.text[..self.start].chars().count() + 1
    }

    pub(super) fn end_column(&self) -> usize {
        self.text.chars().count() + 1
    }

    pub(super) fn next(&mut self) -> Result<Option<Token<'a>>, Fault> {
        if let Some((token, start, position)) = self.peeked.take() {
            (self.start, self.position) = (start, position);
            return Ok(token);
        }
        let rest = self.text[self.position..].trim_start();
        self.start = self.text.len() - rest.len();
        let mut chars = rest.chars();
        let Some(first) = chars.next() else {
            self.position = self.start;
            return Ok(None);
        };
        let (token, length) = match first {
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            '-' => (Token::Minus, 1),
            '=' => (Token::Op(Op::Equal), 1),
            ':' => (Token::Op(Op::Has), 1),
            '!' if rest.starts_with("!=") => (Token::Op(Op::NotEqual), 2),
            '<' if rest.starts_with("<=") => (Token::Op(Op::LessOrEqual), 2),
            '>' if rest.starts_with(">=") => (Token::Op(Op::GreaterOrEqual), 2),
            '<' => (Token::Op(Op::Less), 1),
            '>' => (Token::Op(Op::Greater), 1),
            '"' => self.quoted(rest)?,
            c if c.is_alphanumeric() || c == '_' => {
                let length = word_length(rest);
                (Token::Word(&rest[..length]), length)
            }
            other => return Err(self.fault(format!("unexpected `{}`", other.escape_default()))),
        };
        self.position = self.start + length;
        Ok(Some(token))
    }

    pub(super) fn peek(&mut self) -> Result<Option<&Token<'a>>, Fault> {
        if self.peeked.is_none() {
            let (start, position) = (self.start, self.position);
            let token = self.next()?;
            self.peeked = Some((token, self.start, self.position));
            (self.start, self.position) = (start, position);
        }
        Ok(self.peeked.as_ref().and_then(|(token, ..)| token.as_ref()))
    }

    /// Takes the next token if it is this one.
    pub(super) fn take_if(&mut self, token: &Token<'_>) -> Result<bool, Fault> {
        let same = self.peek()? == Some(token);
        if same {
            self.next()?;
        }
        Ok(same)
    }

    fn quoted(&self, rest: &str) -> Result<(Token<'a>, usize), Fault> {
        let mut text = String::new();
        let mut escaped = false;
        for (offset, c) in rest.char_indices().skip(1) {
            match c {
                '"' | '\\' if escaped => text.push(c),
                _ if escaped => return Err(self.fault(r#"only \" and \\ are escapes"#.into())),
                '"' => return Ok((Token::Text(text), offset + 1)),
                '\\' => {}
                '\0' => return Err(self.fault("a NUL character".into())),
                _ => text.push(c),
            }
            escaped = !escaped && c == '\\';
        }
        Err(self.fault("the quote is not closed".into()))
    }

    fn fault(&self, reason: String) -> Fault {
        Fault {
            issue: Issue::InvalidFormat,
            column: self.column(),
            reason,
        }
    }
}

/// Length of the word that `rest` starts with. A sign may be part of it, for a number's exponent: `1e-3`.
fn word_length(rest: &str) -> usize {
    let end = |from: usize| {
        rest[from..]
            .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.')))
            .map_or(rest.len(), |length| from + length)
    };
    let length = end(0);
    let Some(mantissa) = rest[..length].strip_suffix(['e', 'E']) else {
        return length;
    };
    let number = mantissa.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let mut next = rest[length..].bytes();
    let signed = matches!(next.next(), Some(b'-' | b'+'));
    let exponent = next.next().is_some_and(|b| b.is_ascii_digit());
    if number && !mantissa.is_empty() && signed && exponent {
        end(length + 1)
    } else {
        length
    }
}
