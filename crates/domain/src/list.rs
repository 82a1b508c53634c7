//! Queries for lists: the fields of each resource, page sizes, and one page of one list.

use crate::{
    Issue, Issues,
    field::{Field, Kind, number, text, time, word},
    filter::Filter,
    order::OrderBy,
    page::PageToken,
};

pub const DEFAULT_PAGE_SIZE: u32 = 5;
pub const MAX_PAGE_SIZE: u32 = 100;

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

const READER_OUTCOMES: &[&str] = &[
    "JUDGED",
    "OVER_BUDGET",
    "BUSY",
    "UNAVAILABLE",
    "NO_OFFERS",
    "OTHER_LANGUAGE",
    "UNTITLED",
];

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
    word("format", &["EARSHOT", "SLACK", "DISCORD", "TEAMS", "EMAIL"]),
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
    word("match.reader", READER_OUTCOMES),
];

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
pub fn foreign_token() -> Issues {
    let hint = "not a token of this list";
    Issues::one_with_hint("pageToken", Issue::InvalidFormat, hint)
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

#[cfg(test)]
mod tests {
    use super::parse_page_size;
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
}
