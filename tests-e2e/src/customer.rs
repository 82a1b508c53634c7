//! The customer: Hivelight, an invented maker of scales and sensors for beehives.

use serde_json::{Value, json};

/// The product's page, with the boilerplate that a real one has around its text.
pub(crate) const PAGE: &str = include_str!("data/hivelight.html");

/// Words of the page that say nothing about the product: navigation, cookie bar, testimonials, footer, scripts.
pub(crate) const BOILERPLATE: [&str; 24] = [
    "pricing",
    "careers",
    "sign in",
    "basket",
    "cookie",
    "cookies",
    "accept",
    "preferences",
    "traffic",
    "splendid",
    "grandchildren",
    "marigold",
    "tarnbrook",
    "octavian",
    "packaging",
    "charming",
    "privacy",
    "terms",
    "newsletter",
    "subscribe",
    "social",
    "rights",
    "tracking",
    "shrubbery",
];

/// Words that a person would search for first. Each of them must be in some term.
pub(crate) const SENSIBLE: [&str; 7] = [
    "hive",
    "scale",
    "sensor",
    "colony",
    "swarm",
    "beekeeper",
    "brood",
];

/// A Manager for the given pages, in the form of SPEC.md part 4.
pub(crate) fn manager(nickname: &str, source: &str, urls: &[String], connection: &str) -> Value {
    json!({
        "nickname": nickname, "type": "FEED_MANAGER", "enable": true,
        "source": {"type": source},
        "input": {"type": "STRUCTURED", "urls": urls, "focus": {"type": "SALES"}},
        "notices": [{"type": "HTTP_REQUEST", "connection": connection}],
    })
}

/// A Manager that matches every post with `word`, for tests of the steps after matching.
pub(crate) fn word_manager(source: &str, word: &str, connection: &str) -> Value {
    json!({
        "nickname": word, "type": "FEED_MANAGER", "source": {"type": source},
        "instructions": {"require": [[word]]},
        "notices": [{"type": "HTTP_REQUEST", "connection": connection}],
    })
}
