//! Common parts of lists: fields to filter and order by, page sizes, and the order itself.

use crate::{
    Issue, Issues, Timestamp,
    filter::{Filter, Literal, Op},
    page::PageToken,
};

pub const DEFAULT_PAGE_SIZE: u32 = 5;
pub const MAX_PAGE_SIZE: u32 = 100;
const MAX_ORDER_BYTES: usize = 2_048;
const MAX_ORDER_FIELDS: usize = 10;

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
    #[must_use]
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

    #[must_use]
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

const fn text(name: &'static str) -> Field {
    Field {
        name,
        kind: Kind::Text,
    }
}

const fn time(name: &'static str) -> Field {
    Field {
        name,
        kind: Kind::Time,
    }
}

const fn word(name: &'static str, words: &'static [&'static str]) -> Field {
    Field {
        name,
        kind: Kind::Word(words),
    }
}

pub const NAMESPACE_FIELDS: &[Field] = &[
    text("name"),
    time("createTime"),
    time("updateTime"),
    text("nickname"),
];

pub const MANAGER_FIELDS: &[Field] = &[
    text("name"),
    time("createTime"),
    time("updateTime"),
    text("nickname"),
    word("type", &["FEED_MANAGER"]),
    Field {
        name: "enable",
        kind: Kind::Bool,
    },
    word("mode", &["AUTOMATIC", "MANUAL"]),
    word("state", &["PENDING_APPLY", "APPLIED", "APPLY_FAILED"]),
    time("applyTime"),
    word("applyError.code", APPLY_ERROR_CODES),
    text("applyError.message"),
    word("source.type", &["FORUM", "MICROBLOG", "NETWORK"]),
    word("input.type", &["STRUCTURED"]),
    word("input.focus.type", FOCUSES),
    word("input.sensitivity", &["PRECISE", "BALANCED", "BROAD"]),
    word("instructions.focus", FOCUSES),
    number("instructions.threshold"),
    text("instructions.brief"),
    number("maxScansPerDay"),
];

const FOCUSES: &[&str] = &["SALES", "COMPETITOR", "CRISIS"];

const APPLY_ERROR_CODES: &[&str] = &[
    "no_reachable_url",
    "no_usable_content",
    "forbidden_address",
    "invalid_instructions",
    "quota_exceeded",
];

pub const CONNECTION_FIELDS: &[Field] = &[
    text("name"),
    time("createTime"),
    time("updateTime"),
    text("nickname"),
    word("type", &["HTTP_CONNECTION"]),
    word("method", &["POST", "PUT", "PATCH"]),
    word("format", &["EARSHOT", "SLACK", "DISCORD", "TEAMS"]),
    number("maxPerSecond"),
    word("state", &["ACTIVE", "DISABLED"]),
    text("stateReason"),
];

pub const SCAN_FIELDS: &[Field] = &[
    text("name"),
    time("createTime"),
    time("updateTime"),
    Field {
        name: "value",
        kind: Kind::Bool,
    },
    Field {
        name: "labels",
        kind: Kind::Texts,
    },
    word(
        "post.type",
        &[
            "FORUM_LINK",
            "FORUM_COMMENT",
            "MICROBLOG_TWEET",
            "NETWORK_POST",
        ],
    ),
    time("post.time"),
    text("post.id"),
    text("post.title"),
    text("post.text"),
    text("post.url"),
    text("post.subforum.id"),
    text("post.subforum.name"),
    text("post.subforum.url"),
    text("post.user.id"),
    text("post.user.name"),
    text("post.user.url"),
    number("match.score"),
    word("match.focus", FOCUSES),
    Field {
        name: "match.judged",
        kind: Kind::Bool,
    },
];

const fn number(name: &'static str) -> Field {
    Field {
        name,
        kind: Kind::Number,
    }
}

pub const DELIVERY_FIELDS: &[Field] = &[
    text("name"),
    time("createTime"),
    time("updateTime"),
    text("scan"),
    word(
        "state",
        &[
            "PENDING",
            "IN_FLIGHT",
            "SUCCEEDED",
            "RETRYING",
            "EXHAUSTED",
            "CANCELLED",
        ],
    ),
    number("attemptCount"),
    time("lastAttemptTime"),
    time("nextAttemptTime"),
    number("lastStatusCode"),
    text("lastError"),
];

pub const REPLAY_FIELDS: &[Field] = &[
    text("name"),
    time("createTime"),
    time("updateTime"),
    time("startTime"),
    time("endTime"),
    word("state", &["RUNNING", "DONE", "CANCELLED"]),
    number("total"),
    number("done"),
];

pub const AUDIT_EVENT_FIELDS: &[Field] = &[
    text("name"),
    time("createTime"),
    word(
        "action",
        &[
            "CREATE",
            "UPDATE",
            "DELETE",
            "APPLY",
            "BACKFILL",
            "ENABLE",
            "TEST",
            "REPLAY",
            "CANCEL",
            "RETRY",
            "READ_SECRETS",
            "REVOKE",
        ],
    ),
    text("resource"),
    Field {
        name: "fields",
        kind: Kind::Texts,
    },
    word("actor.type", &["API_KEY", "OPERATOR"]),
    text("actor.key"),
    text("clientAddress"),
    text("requestId"),
];

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
    #[must_use]
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

/// One page of one list, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct ListQuery {
    pub page_size: u32,
    /// The position of the last item on the previous page; `None` for the first page.
    pub after: Option<PageToken>,
    pub filter: Filter,
    pub order: OrderBy,
    /// The data that page tokens of this list are bound to.
    pub binding: String,
}

impl ListQuery {
    /// Parses the query parameters of a list under `parent`; each is the raw text or absent.
    ///
    /// # Errors
    /// Every parameter that fails.
    pub fn parse(
        parent: &str,
        fields: &'static [Field],
        page_size: Option<&str>,
        page_token: Option<&str>,
        filter: Option<&str>,
        order_by: Option<&str>,
    ) -> Result<Self, Issues> {
        let mut issues = Issues::default();
        let mut keep =
            |result: Result<(), Issues>| result.unwrap_or_else(|found| issues.extend(found));

        let mut size = DEFAULT_PAGE_SIZE;
        keep(parse_page_size(page_size).map(|parsed| size = parsed));
        let mut parsed_filter = Filter::default();
        keep(
            Filter::parse(filter.unwrap_or_default(), fields).map(|parsed| parsed_filter = parsed),
        );
        let mut order = OrderBy::newest_first();
        keep(OrderBy::parse(order_by.unwrap_or_default(), fields).map(|parsed| order = parsed));

        let binding = [
            parent,
            filter.unwrap_or_default(),
            order_by.unwrap_or_default(),
        ]
        .join("\n");
        let mut after = None;
        if let Some(token) = page_token.filter(|token| !token.is_empty()) {
            keep(
                PageToken::parse(token, &binding, &order)
                    .ok()
                    .map(|parsed| after = Some(parsed))
                    .ok_or_else(foreign_token),
            );
        }
        issues.or(Self {
            page_size: size,
            after,
            filter: parsed_filter,
            order,
            binding,
        })
    }
}

/// The issue of a token that is damaged or belongs to another list.
#[must_use]
pub fn foreign_token() -> Issues {
    let mut issues = Issues::default();
    issues.add_with_hint(
        "pageToken",
        Issue::InvalidFormat,
        "not a token of this list",
    );
    issues
}

fn parse_page_size(text: Option<&str>) -> Result<u32, Issues> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(DEFAULT_PAGE_SIZE);
    };
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Issues::one("pageSize", Issue::InvalidFormat));
    }
    let zero = digits.bytes().all(|b| b == b'0');
    if text.starts_with('-') && !zero {
        return Err(Issues::one("pageSize", Issue::OutOfRange));
    }
    // A number that is too long for an u32 is over the maximum anyway.
    Ok(match digits.parse::<u32>() {
        Ok(0) => DEFAULT_PAGE_SIZE,
        Ok(size) => size.min(MAX_PAGE_SIZE),
        Err(_) if zero => DEFAULT_PAGE_SIZE,
        Err(_) => MAX_PAGE_SIZE,
    })
}

/// The value of `field` in the JSON of an item, for the position in a page token.
#[must_use]
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

#[cfg(test)]
mod tests {
    use super::{Direction, OrderBy, SCAN_FIELDS, parse_page_size};
    use crate::Issue;

    #[test]
    fn page_sizes_are_clamped_or_refused() {
        for (text, size) in [
            (None, 5),
            (Some("0"), 5),
            (Some("7"), 7),
            (Some("1000"), 100),
            (Some("99999999999"), 100),
        ] {
            assert_eq!(parse_page_size(text).unwrap(), size);
        }
        for (text, issue) in [
            ("-1", Issue::OutOfRange),
            ("ten", Issue::InvalidFormat),
            ("1.5", Issue::InvalidFormat),
        ] {
            assert_eq!(
                parse_page_size(Some(text)).unwrap_err().as_slice()[0].issue,
                issue
            );
        }
    }

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
