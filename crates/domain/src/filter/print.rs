//! Prints filters as text that parses back to an equal filter.

use std::fmt;

use super::{Clause, Comparison, Filter};
use crate::field::{Literal, Op};

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        separated(f, &self.0, " AND ")
    }
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [one] = self.0.as_slice() {
            return one.fmt(f);
        }
        f.write_str("(")?;
        separated(f, &self.0, " OR ")?;
        f.write_str(")")
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let negation = if self.negated { "NOT " } else { "" };
        write!(f, "{negation}{} {} {}", self.field, self.op, self.literal)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Has => ":",
        })
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => {
                let escaped = text.replace('\\', r"\\").replace('"', r#"\""#);
                write!(f, "\"{escaped}\"")
            }
            Self::Time(time) => write!(f, "\"{time}\""),
            Self::Bool(flag) => write!(f, "{flag}"),
            // With an exponent, because the largest has 309 digits without.
            Self::Number(number) => write!(f, "{number:e}"),
        }
    }
}

fn separated<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    items: &[T],
    separator: &str,
) -> fmt::Result {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            f.write_str(separator)?;
        }
        item.fmt(f)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Clause, Comparison, Filter};
    use crate::{
        Timestamp,
        field::{Field, Kind, Literal, Op},
        list::{MANAGER_FIELDS, SCAN_FIELDS},
    };

    fn literal(kind: Kind) -> BoxedStrategy<Literal> {
        match kind {
            Kind::Text | Kind::Texts => "[^\\x00]{0,12}".prop_map(Literal::Text).boxed(),
            Kind::Word(words) => prop::sample::select(words)
                .prop_map(|word| Literal::Text(word.to_owned()))
                .boxed(),
            // From the year 1 to 9999.
            Kind::Time => (-62_135_596_800_000_000_i64..253_402_300_800_000_000)
                .prop_map(|micros| Literal::Time(Timestamp::from_micros(micros).unwrap()))
                .boxed(),
            Kind::Bool => any::<bool>().prop_map(Literal::Bool).boxed(),
            Kind::Number => any::<f64>()
                .prop_filter("a literal is finite", |number| number.is_finite())
                .prop_map(Literal::Number)
                .boxed(),
        }
    }

    fn comparison(fields: &'static [Field]) -> impl Strategy<Value = Comparison> {
        const OPS: [Op; 7] = [
            Op::Equal,
            Op::NotEqual,
            Op::Less,
            Op::LessOrEqual,
            Op::Greater,
            Op::GreaterOrEqual,
            Op::Has,
        ];
        (prop::sample::select(fields), any::<bool>()).prop_flat_map(|(field, negated)| {
            let ops: Vec<Op> = OPS.into_iter().filter(|op| field.kind.takes(*op)).collect();
            (prop::sample::select(ops), literal(field.kind)).prop_map(move |(op, literal)| {
                Comparison {
                    negated,
                    field: field.name,
                    op,
                    literal,
                }
            })
        })
    }

    fn filter(fields: &'static [Field]) -> impl Strategy<Value = Filter> {
        let clause = prop::collection::vec(comparison(fields), 1..4).prop_map(Clause);
        prop::collection::vec(clause, 0..5).prop_map(Filter)
    }

    proptest! {
        #[test]
        fn filters_parse_back_equal(filter in filter(SCAN_FIELDS)) {
            let text = filter.to_string();
            prop_assert_eq!(Filter::parse(&text, SCAN_FIELDS), Ok(filter), "{}", text);
        }

        #[test]
        fn manager_filters_parse_back_equal(filter in filter(MANAGER_FIELDS)) {
            let text = filter.to_string();
            prop_assert_eq!(Filter::parse(&text, MANAGER_FIELDS), Ok(filter), "{}", text);
        }

        #[test]
        fn filters_without_spaces_and_with_minus_parse_back_equal(filter in filter(SCAN_FIELDS)) {
            let comparisons: Vec<String> = filter.0.iter().map(|clause| {
                let any: Vec<String> = clause.0.iter().map(|one| {
                    let negation = if one.negated { "-" } else { "" };
                    format!("{negation}{}{}{}", one.field, one.op, one.literal)
                }).collect();
                any.join(" OR\t")
            }).collect();
            let text = comparisons.join("\nAND ");
            prop_assert_eq!(Filter::parse(&text, SCAN_FIELDS), Ok(filter), "{}", text);
        }
    }
}
