//! The `filter` of lists: AIP-160, limited to conjunctive normal form.
//!
//! `OR` binds tighter than `AND`, so `a AND b OR c` means `a AND (b OR c)`, which is already the normal form.
//! Literals are checked against the kind of their field here, so that the result can be used in a database
//! query without another check.

use crate::{
    Issue, Issues,
    field::{Field, Kind, Literal, Op},
};

mod lexer;
mod print;

use lexer::{Fault, Lexer, Token};

const MAX_BYTES: usize = 2_048;
const MAX_COMPARISONS: usize = 50;

/// All clauses must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter(pub Vec<Clause>);

/// One of these must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Clause(pub Vec<Comparison>);

#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    pub negated: bool,
    /// The name of one of the list's fields.
    pub field: &'static str,
    pub op: Op,
    pub literal: Literal,
}

impl Filter {
    /// Parses `text` over a list's `fields`. Blank text gives the filter that matches everything.
    ///
    /// # Errors
    /// One issue on `filter`, whose hint names the column.
    pub fn parse(text: &str, fields: &'static [Field]) -> Result<Self, Issues> {
        if text.len() > MAX_BYTES {
            let column = text.chars().count() + 1;
            let hint = format!("column {column}: {} bytes, {MAX_BYTES} at most", text.len());
            return Err(Issues::one_with_hint("filter", Issue::TooLong, hint));
        }
        Parser {
            lexer: Lexer::new(text),
            fields,
            comparisons: 0,
        }
        .filter()
        .map_err(|fault| {
            let hint = format!("column {}: {}", fault.column, fault.reason);
            Issues::one_with_hint("filter", fault.issue, hint)
        })
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    fields: &'static [Field],
    comparisons: usize,
}

impl Parser<'_> {
    fn filter(mut self) -> Result<Filter, Fault> {
        let mut clauses = Vec::new();
        if self.lexer.peek()?.is_none() {
            return Ok(Filter(clauses));
        }
        loop {
            clauses.push(self.clause()?);
            match self.lexer.next()? {
                None => return Ok(Filter(clauses)),
                Some(Token::Word("AND")) => {}
                Some(other) => return Err(self.unexpected(&other, "AND, OR, or the end")),
            }
        }
    }

    fn clause(&mut self) -> Result<Clause, Fault> {
        let mut any = Vec::new();
        loop {
            if self.lexer.take_if(&Token::Open)? {
                loop {
                    any.push(self.comparison()?);
                    if self.lexer.take_if(&Token::Close)? {
                        break;
                    }
                    match self.lexer.next()? {
                        Some(Token::Word("OR")) => {}
                        Some(other) => return Err(self.unexpected(&other, "OR or `)`")),
                        None => return Err(self.ended("`)`")),
                    }
                }
            } else {
                any.push(self.comparison()?);
            }
            if !self.lexer.take_if(&Token::Word("OR"))? {
                return Ok(Clause(any));
            }
        }
    }

    fn comparison(&mut self) -> Result<Comparison, Fault> {
        let negated =
            self.lexer.take_if(&Token::Minus)? || self.lexer.take_if(&Token::Word("NOT"))?;
        let field = match self.lexer.next()? {
            Some(Token::Word(name)) => self
                .fields
                .iter()
                .find(|field| field.name == name)
                .ok_or_else(|| {
                    let reason = format!("unknown field {}", Token::Word(name));
                    self.fault(Issue::UnknownField, reason)
                })?,
            Some(other) => return Err(self.unexpected(&other, "a field")),
            None => return Err(self.ended("a field")),
        };
        let op = match self.lexer.next()? {
            Some(Token::Op(op)) => op,
            Some(other) => return Err(self.unexpected(&other, "an operator")),
            None => return Err(self.ended("an operator")),
        };
        if !field.kind.takes(op) {
            return Err(self.fault(
                Issue::InvalidFormat,
                format!("`{}` does not take this operator", field.name),
            ));
        }
        let literal = match self.lexer.next()? {
            Some(Token::Text(text)) => self.literal(field, &text)?,
            Some(Token::Word(word))
                if !matches!(field.kind, Kind::Text | Kind::Texts | Kind::Time) =>
            {
                self.literal(field, word)?
            }
            Some(Token::Minus) => match self.lexer.next()? {
                Some(Token::Word(word)) if field.kind == Kind::Number => {
                    self.literal(field, &format!("-{word}"))?
                }
                _ => return Err(self.fault(Issue::InvalidFormat, "expected a number".into())),
            },
            Some(other) => return Err(self.unexpected(&other, "a literal in double quotes")),
            None => return Err(self.ended("a literal")),
        };
        self.comparisons += 1;
        if self.comparisons > MAX_COMPARISONS {
            return Err(self.fault(
                Issue::TooMany,
                format!("more than {MAX_COMPARISONS} comparisons"),
            ));
        }
        Ok(Comparison {
            negated,
            field: field.name,
            op,
            literal,
        })
    }

    fn literal(&self, field: &Field, text: &str) -> Result<Literal, Fault> {
        field.kind.literal(text).map_err(|issue| {
            let reason = match issue {
                Issue::InvalidEnum => format!("`{}` does not have this value", field.name),
                _ => format!("`{}` takes {}", field.name, field.kind.describe()),
            };
            self.fault(issue, reason)
        })
    }

    fn fault(&self, issue: Issue, reason: String) -> Fault {
        Fault {
            issue,
            column: self.lexer.column(),
            reason,
        }
    }

    fn unexpected(&self, token: &Token<'_>, expected: &str) -> Fault {
        self.fault(
            Issue::InvalidFormat,
            format!("expected {expected}, found {token}"),
        )
    }

    fn ended(&self, expected: &str) -> Fault {
        Fault {
            issue: Issue::InvalidFormat,
            column: self.lexer.end_column(),
            reason: format!("expected {expected}, found the end"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Filter;
    use crate::{
        Issue,
        field::{Literal, Op},
        list::SCAN_FIELDS,
    };

    fn error(text: &str) -> (Issue, String) {
        let issues = Filter::parse(text, SCAN_FIELDS).unwrap_err();
        let one = &issues.as_slice()[0];
        (one.issue, one.hint.clone().unwrap_or_default())
    }

    #[test]
    fn or_binds_tighter_than_and() {
        let filter = Filter::parse(
            r#"value = true AND post.title : "a" OR post.text : "b""#,
            SCAN_FIELDS,
        )
        .unwrap();
        let shape: Vec<usize> = filter.0.iter().map(|clause| clause.0.len()).collect();
        assert_eq!(shape, [1, 2]);
        let grouped = Filter::parse(
            r#"value = true AND (post.title : "a" OR post.text : "b")"#,
            SCAN_FIELDS,
        );
        assert_eq!(grouped.unwrap(), filter);
    }

    #[test]
    fn literals_have_the_kind_of_their_field() {
        let filter = Filter::parse(
            r#"-createTime > "2026-11-21T01:02:03+01:00" AND match.score >= -0.5"#,
            SCAN_FIELDS,
        )
        .unwrap();
        let first = &filter.0[0].0[0];
        assert!(first.negated);
        assert_eq!(first.op, Op::Greater);
        assert_eq!(
            first.literal,
            Literal::Time("2026-11-21T00:02:03Z".parse().unwrap())
        );
        assert_eq!(filter.0[1].0[0].literal, Literal::Number(-0.5));
    }

    #[test]
    fn numbers_may_have_exponents() {
        for (text, number) in [
            ("1e3", 1e3),
            ("-2.5E-3", -2.5e-3),
            ("7e+2", 7e2),
            ("\"1e-3\"", 1e-3),
            ("-0", 0.0),
            ("5e-324", 5e-324),
        ] {
            let filter = Filter::parse(&format!("match.score={text}"), SCAN_FIELDS).unwrap();
            assert_eq!(filter.0[0].0[0].literal, Literal::Number(number), "{text}");
        }
        for text in [
            "1e", "1e-", "e3", "1e400", "inf", "nan", "--1", "1 e3", "1e-x",
        ] {
            let found = Filter::parse(&format!("match.score = {text}"), SCAN_FIELDS);
            assert!(found.is_err(), "{text}");
        }
    }

    #[test]
    fn bounds_hold() {
        let fifty = vec!["value = true"; 50].join(" AND ");
        assert_eq!(Filter::parse(&fifty, SCAN_FIELDS).unwrap().0.len(), 50);
        let (issue, hint) = error(&format!("({}) OR value = true", fifty.replace("AND", "OR")));
        assert_eq!(issue, Issue::TooMany, "{hint}");
        let long = format!("post.title : \"{}\"", "a".repeat(2_048 - 15));
        assert_eq!(long.len(), 2_048);
        assert!(Filter::parse(&long, SCAN_FIELDS).is_ok());
        assert_eq!(error(&format!("{long} ")).0, Issue::TooLong);
    }

    #[test]
    fn faults_name_the_column() {
        for (text, issue, column) in [
            (r#"colour = "red""#, Issue::UnknownField, 1),
            (r#"value = true AND"#, Issue::InvalidFormat, 17),
            (r#"createTime > "yesterday""#, Issue::InvalidFormat, 14),
            (r#"post.type = "TWEET""#, Issue::InvalidEnum, 13),
            (r#"value = true value = false"#, Issue::InvalidFormat, 14),
            (r#"post.title = "open"#, Issue::InvalidFormat, 14),
            (r#"(value = true"#, Issue::InvalidFormat, 14),
            (r#"value : true"#, Issue::InvalidFormat, 7),
            (r#"value ~ true"#, Issue::InvalidFormat, 7),
            (r#"post.title = "ü" AND"#, Issue::InvalidFormat, 21),
            (
                r#"post.title = "ü" AND colour = 1"#,
                Issue::UnknownField,
                22,
            ),
            ("value = true\nAND\nx = 1", Issue::UnknownField, 18),
            (r#"post.title = "\n""#, Issue::InvalidFormat, 14),
            (r#"NOT NOT value = true"#, Issue::UnknownField, 5),
            (r#"NOT (value = true)"#, Issue::InvalidFormat, 5),
            (
                r#"(value = true AND value = false)"#,
                Issue::InvalidFormat,
                15,
            ),
            (r#"()"#, Issue::InvalidFormat, 2),
            (r#"value"#, Issue::InvalidFormat, 6),
            (r#"match.score = abc"#, Issue::InvalidFormat, 15),
            (r#"value = yes"#, Issue::InvalidFormat, 9),
            (r#"post.title = bare"#, Issue::InvalidFormat, 14),
        ] {
            let (found, hint) = error(text);
            assert_eq!(found, issue, "{text}: {hint}");
            assert!(
                hint.starts_with(&format!("column {column}:")),
                "{text}: {hint}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in ".{0,80}") {
            let _ = Filter::parse(&text, SCAN_FIELDS);
        }

        #[test]
        fn no_near_filter_panics(text in r#"(value|post\.title|createTime|AND|OR|NOT|[-()=<>!:" \\]|"a"|true|-?[0-9.]){0,12}"#) {
            let _ = Filter::parse(&text, SCAN_FIELDS);
        }
    }
}
