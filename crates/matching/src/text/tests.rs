use proptest::prelude::*;

use super::{Kind, stem, tokens, words};

/// Returns `text@place` for every token, with `+width` where it covers more than one place.
fn shown(text: &str) -> String {
    let show = |token: super::Token<'_>| match token.width {
        1 => format!("{}:{}", token.text, token.place),
        width => format!("{}:{}+{width}", token.text, token.place),
    };
    tokens(text)
        .into_iter()
        .map(show)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn words_are_cut_as_people_read_them() {
    for (text, expected) in [
        ("Hello, World!", "hello:0 world:1"),
        ("Wi-Fi router", "wi:0 fi:1 wifi:0+2 router:2"),
        ("node.js", "node:0 js:1 nodejs:0+2"),
        ("don’t stop", "dont:0 stop:1"),
        ("Acme's offer", "acme:0 acmes:0 offer:1"),
        ("l'Oréal", "l:0 oreal:1 loreal:0+2"),
        ("AT&T", "at:0 t:1 att:0+2"),
        ("Black & Decker", "black:0 and:1 decker:2"),
        (
            "@Acme_Help hi",
            "acme:0 help:1 acmehelp:0+2 @acmehelp:0+2 hi:2",
        ),
        ("#acme", "acme:0 #acme:0"),
        ("bob@acme.com", "bob:0 acme:1 com:2 acmecom:1+2"),
        ("C++ or C#?", "c++:0 or:1 c#:2"),
        ("Disney+ is", "disney:0 disney+:0 is:1"),
        ("use .NET now", "use:0 net:1 .net:1 now:2"),
        ("1,000 bikes", "1:0 000:1 1000:0+2 bikes:2"),
        ("red,green", "red:0 green:1"),
        ("soft\u{ad}ware", "software:0"),
        ("東京タワー", "東:0 京:1 タ:2 ワ:3 ー:4"),
        ("مـرحبا", "مرحبا:0"),
        ("\u{fe77}", "\u{fe77}:0"),
        ("LG전자 TV", "lg:0 전:1 자:2 tv:3"),
        ("", ""),
        ("... !!", ""),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn sentences_keep_phrases_apart() {
    for (text, places) in [
        ("an apple. Tree", vec![0, 1, 3]),
        ("Dr. Martens", vec![0, 1]),
        ("apple\ntree", vec![0, 1]),
        ("apple\n\ntree", vec![0, 2]),
        ("apple, tree (oak)", vec![0, 1, 2]),
        ("really? yes", vec![0, 2]),
        ("好。的", vec![0, 2]),
        ("see acme.com/crm", vec![0, 1, 2, 3]),
    ] {
        let found: Vec<u32> = words(text).map(|token| token.place).collect();
        assert_eq!(found, places, "{text}");
    }
}

#[test]
fn words_have_distinct_positions() {
    let found: Vec<String> = words("C++ on Wi-Fi, @Acme's")
        .map(|token| token.text.into_owned())
        .collect();
    assert_eq!(found, ["c++", "on", "wi", "fi", "acme"]);
}

#[test]
fn inflections_share_a_stem() {
    assert_eq!(stem("running"), stem("runs"));
    assert_eq!(stem("invoices"), stem("invoicing"));
    assert_eq!(stem("東京"), "東京");
}

#[test]
fn hostile_texts_take_linear_time() {
    for unit in [
        "a",
        "-a",
        "a\u{301}",
        "\u{301}",
        "'s",
        "&",
        " & ",
        "🇩🇪",
        "👩‍👩‍👧",
        "@",
        "+",
        ".\n",
        "한",
        "\u{200d}",
        "\u{ad}",
    ] {
        let text = unit.repeat(400_000 / unit.len());
        // What takes quadratic time does not end within the runner's limit of minutes.
        assert!(tokens(&text).len() <= 2 * text.len(), "{unit:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_text_is_cut_without_panic_and_in_order(text in "(\\PC|[ .'@#+&-]|[a-z]|한|ก็|\u{ad}|\u{640}|\u{200d}|\n){0,60}") {
        let mut place = 0;
        for token in tokens(&text) {
            prop_assert_eq!(&text[token.start..token.start + token.raw.len()], token.raw);
            prop_assert!(!token.text.is_empty(), "{:?}", token);
            prop_assert!(token.width >= 1 && token.place + 4 >= place);
            place = token.place;
        }
    }

    #[test]
    fn words_of_a_text_are_those_of_its_folded_words(text in "[a-zA-Z0-9 é日本ไท]{0,40}") {
        let again: Vec<String> = words(&text).map(|t| t.text.into_owned()).collect();
        let twice: Vec<String> = words(&again.join(" ")).map(|t| t.text.into_owned()).collect();
        prop_assert_eq!(again, twice);
    }

    #[test]
    fn each_position_has_one_word(text in "[a-c'.&+ @-]{0,30}") {
        let places: Vec<u32> = words(&text).map(|t| t.place).collect();
        prop_assert!(places.is_sorted_by(|a, b| a < b));
        let covered: std::collections::BTreeSet<u32> = tokens(&text)
            .iter().filter(|t| t.kind != Kind::Joined).map(|t| t.place).collect();
        prop_assert_eq!(places.len(), covered.len());
    }
}
