//! Input from API clients: parameters of lists, names and keys, bodies.

use std::{fmt::Display, str::FromStr};

use domain::{
    ConnectionName, DeliveryName, FeedName, Id, Issue, Issues, ManagerName, NamespaceName,
    ReplayName, ScanName, Timestamp,
    address::AddressPolicy,
    connection::{self, CreateConnection},
    feed::FeedRules,
    field::Field,
    filter::Filter,
    host_name, json,
    key::ApiKey,
    list::{CONNECTION_FIELDS, DELIVERY_FIELDS, ListQuery, MANAGER_FIELDS, SCAN_FIELDS},
    manager::{self, CreateManager, Rules, SourceType},
    order::OrderBy,
    page::PageToken,
    patch::Patch,
    web_url::{self, WebUrl},
};

const LISTS: [&[Field]; 4] = [
    SCAN_FIELDS,
    MANAGER_FIELDS,
    CONNECTION_FIELDS,
    DELIVERY_FIELDS,
];

/// Parses the text as a filter and as an order, with the fields of each list.
pub(crate) fn filter(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    for fields in LISTS {
        if let Ok(filter) = Filter::parse(text, fields) {
            let comparisons: usize = filter.0.iter().map(|clause| clause.0.len()).sum();
            assert!(comparisons <= 50, "{comparisons} comparisons of {text:?}");
        }
        if let Ok(order) = OrderBy::parse(text, fields) {
            assert!((1..=10).contains(&order.0.len()), "{text:?}");
        }
    }
}

/// The first line is the order of the token, the rest is the token; also the position with a valid checksum,
/// which anyone can compute.
pub(crate) fn page_token(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (order_by, token) = text.split_once('\n').unwrap_or(("", &text));
    let query = |token: &str| {
        let order = Some(order_by);
        ListQuery::parse(
            "namespaces",
            SCAN_FIELDS,
            Some("7"),
            Some(token),
            None,
            order,
        )
    };
    let _ = query(token);
    let Ok(first) = query("") else {
        return;
    };
    let forged = PageToken::forge(token.as_bytes(), &first.binding);
    if let Ok(query) = query(&forged) {
        let place = query.after.expect("a token was given");
        let again = PageToken::parse(&place.encode(&query.binding), &query.binding, &query.order);
        assert_eq!(
            again.ok(),
            Some(place),
            "the place changes when it is read back"
        );
    }
}

/// Names, ids, keys, times and addresses: an accepted text must print unchanged.
pub(crate) fn names(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    same::<NamespaceName>(&text);
    same::<ManagerName>(&text);
    same::<ConnectionName>(&text);
    same::<ScanName>(&text);
    same::<DeliveryName>(&text);
    same::<ReplayName>(&text);
    same::<FeedName>(&text);
    same::<Id>(&text);
    if let Ok(key) = text.parse::<ApiKey>() {
        assert_eq!(key.expose(), text);
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        assert_eq!(time.to_string().parse().ok(), Some(time), "{text:?}");
    }
    for kind in [web_url::Kind::Seed, web_url::Kind::Connection] {
        if let Ok(url) = WebUrl::parse(&text, &AddressPolicy::default(), kind) {
            let host = url.url().host_str().unwrap_or_default();
            match web_url::literal_address(host) {
                Some(address) => assert!(domain::address::is_public(address), "{text:?}"),
                None => assert!(!host_name::is_reserved_name(host), "{text:?}"),
            }
        }
    }
}

fn same<T: FromStr + Display>(text: &str) {
    if let Ok(read) = text.parse::<T>() {
        assert_eq!(read.to_string(), text);
    }
}

/// Accepts every feed.
struct AnyFeed;

impl FeedRules for AnyFeed {
    fn check(&self, _: &FeedName, _: Option<SourceType>) -> Result<(), Issue> {
        Ok(())
    }
}

/// A body of each resource, for create and update requests.
pub(crate) fn body(data: &[u8]) {
    let Ok(body) = json::parse(data) else {
        return;
    };
    let addresses = AddressPolicy::default();
    let rules = Rules {
        addresses: &addresses,
        feeds: &AnyFeed,
    };
    told(CreateManager::parse(&body, rules));
    if let Ok(made) = CreateConnection::parse(&body, &addresses) {
        for (name, value) in &made.headers.0 {
            let split = |c: char| matches!(c, '\r' | '\n' | '\0');
            assert!(
                !name.contains(split) && !value.contains(split),
                "{name:?}: {value:?}"
            );
        }
    }
    for paths in [manager::PATHS, connection::PATHS] {
        let mask = body.get("updateMask").and_then(|mask| mask.as_str());
        if let Ok(patch) = Patch::parse(&body, mask, paths) {
            let _ = patch.apply(&body, paths);
        }
    }
}

fn told<T>(parsed: Result<T, Issues>) {
    if let Err(issues) = parsed {
        assert!(!issues.as_slice().is_empty(), "refused without a reason");
    }
}
