//! The order of a list.

use crate::{
    Issue, Issues,
    field::{Field, Kind, time},
};

const MAX_ORDER_BYTES: usize = 2_048;
const MAX_ORDER_FIELDS: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Ascending,
    Descending,
}

/// The fields to order by, the most significant first. The name breaks every tie, in the direction of the last
/// field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderBy(pub Vec<(Field, Direction)>);

impl OrderBy {
    /// `createTime desc`, the default of every list.
    pub fn newest_first() -> Self {
        Self(vec![(time("createTime"), Direction::Descending)])
    }

    /// # Errors
    /// One issue on `orderBy`.
    pub fn parse(text: &str, fields: &'static [Field]) -> Result<Self, Issues> {
        let fail = |issue| Issues::one("orderBy", issue);
        if text.len() > MAX_ORDER_BYTES {
            return Err(fail(Issue::TooLong));
        }
        if text.trim().is_empty() {
            return Ok(Self::newest_first());
        }
        let mut order: Vec<(Field, Direction)> = Vec::new();
        for part in text.split(',') {
            let mut words = part.split_whitespace();
            let name = words.next().ok_or_else(|| fail(Issue::InvalidFormat))?;
            let field = fields
                .iter()
                .find(|field| field.name == name && field.kind != Kind::Texts)
                .ok_or_else(|| fail(Issue::UnknownField))?;
            let direction = match words.next() {
                None => Direction::Ascending,
                Some(word) if word.eq_ignore_ascii_case("asc") => Direction::Ascending,
                Some(word) if word.eq_ignore_ascii_case("desc") => Direction::Descending,
                Some(_) => return Err(fail(Issue::InvalidFormat)),
            };
            if words.next().is_some() {
                return Err(fail(Issue::InvalidFormat));
            }
            if order.iter().any(|(other, _)| other == field) {
                return Err(fail(Issue::Duplicate));
            }
            order.push((*field, direction));
        }
        if order.len() > MAX_ORDER_FIELDS {
            return Err(fail(Issue::TooMany));
        }
        Ok(Self(order))
    }
}

#[cfg(test)]
mod tests {
    use super::{Direction, OrderBy};
    use crate::list::SCAN_FIELDS;

    #[test]
    fn directions_default_to_ascending() {
        let order = OrderBy::parse("post.time, createTime DESC", SCAN_FIELDS).unwrap();
        let directions: Vec<_> = order
            .0
            .iter()
            .map(|(field, direction)| (field.name, *direction))
            .collect();
        assert_eq!(
            directions,
            [
                ("post.time", Direction::Ascending),
                ("createTime", Direction::Descending)
            ]
        );
    }
}
