//! Times, dates, durations and prices: they are on every page and say nothing about its subject.
//!
//! Opening hours (`Mon-Fri 9am to 5pm`), availability (`24/7`), trials (`30-day`) and prices (`49 EUR`) become neither
//! terms nor names. Weekdays and months are recognised in all supported page languages.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use matching::text::{self, Kind, Token};

use crate::word_lists;

/// Role that a word can have in a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Only digits.
    Number,
    /// A time or duration in one word: `9am`, `30min`.
    Measure,
    /// A weekday, month or unit that has no other meaning.
    Calendar,
    /// A short weekday that is also a word (`sun`); counts before a number, or next to another weekday.
    Weekday,
    /// A month that is also a word (`march`); counts next to a number, or to another month.
    Month,
    /// A unit that is also a word (`mo`, `pound`); counts right after a number.
    Unit,
    Other,
}

/// Suffixes right after a number, without a space or with a hyphen: `9am`, `30-day`.
static SUFFIXES: LazyLock<HashSet<&str>> =
    LazyLock::new(|| word_lists::words(include_str!("../data/words/unit_suffixes.txt")).collect());

static CLASSES: LazyLock<HashMap<String, Class>> = LazyLock::new(|| {
    let lists = [
        (include_str!("../data/words/units.txt"), Class::Unit),
        (include_str!("../data/words/months.txt"), Class::Month),
        (include_str!("../data/words/weekdays.txt"), Class::Weekday),
        (include_str!("../data/words/calendar.txt"), Class::Calendar),
    ];
    lists
        .into_iter()
        .flat_map(|(list, class)| {
            word_lists::words(list).map(move |word| (text::fold(word).into_owned(), class))
        })
        .collect()
});

/// Returns for each token of a text whether it is part of a time, date, duration or price.
pub(crate) fn marks(tokens: &[Token<'_>]) -> Vec<bool> {
    let words: Vec<usize> = (0..tokens.len())
        .filter(|&at| tokens[at].kind == Kind::Word)
        .collect();
    let classes: Vec<Class> = words.iter().map(|&at| class(&tokens[at].text)).collect();
    let mut marks: Vec<bool> = tokens.iter().map(is_measure).collect();
    for (nth, &at) in words.iter().enumerate() {
        let near = |index: Option<usize>| index.and_then(|index| classes.get(index)).copied();
        let before = near(nth.checked_sub(1)).unwrap_or(Class::Other);
        let after = near(Some(nth + 1)).unwrap_or(Class::Other);
        let dated = |class| matches!(class, Class::Calendar | Class::Weekday | Class::Month);
        let counted = |class| matches!(class, Class::Number | Class::Measure);
        marks[at] |= match classes[nth] {
            Class::Measure | Class::Calendar => true,
            Class::Weekday => dated(before) || dated(after) || counted(after),
            Class::Month => dated(before) || dated(after) || counted(before) || counted(after),
            Class::Unit => before == Class::Number,
            Class::Number | Class::Other => false,
        };
    }
    marks
}

/// Returns whether a text is only a time, date, duration or price: `24/7`, `30 days`, `Mon-Fri`.
pub(crate) fn is_figure(text: &str) -> bool {
    let tokens = text::tokens(text);
    let marks = marks(&tokens);
    let mut words = tokens
        .iter()
        .zip(&marks)
        .filter(|(token, _)| matches!(token.kind, Kind::Word | Kind::Character))
        .peekable();
    words.peek().is_some()
        && words.all(|(token, &mark)| {
            mark || class(&token.text) == Class::Number
                || (token.kind == Kind::Word && crate::background::is_stop_word(&token.text))
        })
}

/// Returns whether a word of a script without spaces is a calendar word: `月曜日`, `営業時間`.
pub(crate) fn is_calendar_word(folded: &str) -> bool {
    CLASSES.get(folded) == Some(&Class::Calendar)
}

fn is_measure(token: &Token<'_>) -> bool {
    matches!(token.kind, Kind::Word | Kind::Joined) && class(&token.text) == Class::Measure
}

fn class(folded: &str) -> Class {
    let unit = folded.trim_start_matches(|c: char| c.is_numeric());
    if unit.is_empty() {
        return Class::Number;
    }
    if unit.len() < folded.len() {
        let is_suffix = SUFFIXES.contains(unit);
        return if is_suffix {
            Class::Measure
        } else {
            Class::Other
        };
    }
    CLASSES.get(folded).copied().unwrap_or(Class::Other)
}

#[cfg(test)]
mod tests {
    use matching::text;

    use super::{is_figure, marks};

    fn left(line: &str) -> String {
        let tokens = text::tokens(line);
        let marks = marks(&tokens);
        let left = tokens.iter().zip(marks).filter(|(token, mark)| {
            !mark && token.kind == text::Kind::Word && token.text.chars().any(char::is_alphabetic)
        });
        left.map(|(token, _)| token.text.as_ref())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn times_dates_durations_and_prices_are_recognised() {
        for (line, expected) in [
            ("Repairs Mon-Fri 9am, 24/7 hotline", "repairs hotline"),
            ("Ready in 5 min or 30 mins", "ready in or"),
            ("Sat 10-4, Sun 12 noon", ""),
            ("Sun protection on Saturdays", "sun protection on"),
            ("Founded 3 March 2019 in Leith", "founded in leith"),
            ("Mars rover", "mars rover"),
            ("A march of 20 people", "a march of people"),
            ("49 EUR, 12 pounds", ""),
            (
                "Pounds of beans, CAD software",
                "pounds of beans cad software",
            ),
            ("Öffnungszeiten: Montag 9 Uhr", ""),
            (
                "3D printing with 4K and 18650 cells",
                "3d printing with 4k and cells",
            ),
        ] {
            assert_eq!(left(line), expected, "{line}");
        }
    }

    #[test]
    fn text_of_only_figures_is_a_figure() {
        for figure in [
            "24/7",
            "30 days",
            "Mon-Fri",
            "9am",
            "30-day",
            "Monday",
            "12 March 2026",
        ] {
            assert!(is_figure(figure), "{figure}");
        }
        for name in [
            "Monday.com",
            "Mars",
            "3M",
            "7-Eleven",
            "Trek 520",
            "Sun",
            "",
        ] {
            assert!(!is_figure(name), "{name}");
        }
    }
}
