//! Terms of invented pages.

use std::collections::HashSet;

use super::terms;
use crate::{extract::PageText, page::Page};

fn page(html: &str) -> PageText {
    let url = "https://example.com/".parse().unwrap();
    Page::read(&url, Some("text/html"), html.as_bytes())
        .unwrap()
        .text
}

fn texts(html: &str) -> Vec<String> {
    let terms = terms(&[page(html)], &HashSet::new());
    terms.into_iter().map(|term| term.text).collect()
}

#[test]
fn people_hours_and_prices_make_no_terms() {
    let found = texts(
        "<title>Bike repairs in Leith</title><p>Drivetrain repairs while you wait, 24/7, in 15min or 30 mins,
         with a 30-day guarantee from 49 EUR.
         <p>Open Monday to Thursday, 9am to 5pm, Sat 10-4, closed in December and on 3 March.
         <p>“They fixed my drivetrain.” — Priya Natarajan, courier at Wexler
         <p>Priya rides a Brompton.",
    );
    for junk in [
        "9am",
        "5pm",
        "15min",
        "mins",
        "30-day",
        "monday",
        "thursday",
        "sat",
        "december",
        "march",
        "eur",
        "priya",
        "natarajan",
        "courier",
        "wexler",
    ] {
        assert!(
            !found
                .iter()
                .any(|term| term.split(' ').any(|word| word == junk)),
            "{junk}: {found:?}"
        );
    }
    for term in ["drivetrain", "brompton"] {
        assert!(found.iter().any(|found| found == term), "{term}: {found:?}");
    }
}

#[test]
fn repetition_in_the_body_does_not_beat_title_and_headings() {
    let html = |block: &str, count: usize| {
        format!(
            "<title>Espresso machines</title><meta name=description content='Espresso for the office.'>
             <h1>Espresso, rented</h1>{}",
            block.repeat(count)
        )
    };
    for html in [
        html("<p>A rucksack and a trampoline came with it.", 400),
        html(
            "<p>Rucksack rucksack rucksack rucksack rucksack, trampoline.",
            40,
        ),
    ] {
        let found = texts(&html);
        let at = |term: &str| found.iter().position(|found| found == term);
        assert!(at("espresso") < at("rucksack"), "{found:?}");
        assert!(at("espresso") < at("trampoline"), "{found:?}");
    }
}

#[test]
fn a_word_of_more_blocks_weighs_more() {
    let pages = [page(
        "<title>Rented for the office</title><p>Espresso and grinders.<p>Espresso and tampers.",
    )];
    let terms = terms(&pages, &HashSet::new());
    let weight = |text: &str| {
        terms
            .iter()
            .find(|term| term.text == text)
            .map(|term| term.weight)
    };
    assert!(weight("espresso") > weight("tampers"), "{terms:?}");
}

/// Checks the terms of a page in another language: the expected ones, and ones that must be absent.
#[track_caller]
fn assert_terms(html: &str, subjects: &str, grammar: &str) {
    let found = texts(html);
    for subject in subjects.split_whitespace() {
        assert!(
            found.iter().any(|term| term == subject),
            "{subject} is missing: {found:?}"
        );
    }
    for word in grammar.split_whitespace() {
        let is_part = |term: &String| term.split(' ').any(|part| part == word);
        assert!(!found.iter().any(is_part), "{word} is a term: {found:?}");
    }
}

#[test]
fn function_words_of_other_languages_make_no_terms() {
    assert_terms(
        "<html lang=de><title>Siebträgermaschinen aus Zürich</title><p>Wir bauen Siebträgermaschinen von Hand und
         liefern sie in die ganze Schweiz. Außerdem warten wir Geräte, die über zehn Jahre alt sind, und zwar
         auch dann, wenn sie nicht von uns stammen. Jetzt kostenlos anfragen! Montags bis freitags, 9 Uhr.",
        "siebtragermaschinen schweiz",
        "und die wir von sie uber ausserdem zwar wenn nicht auch dann jetzt kostenlos uhr montags jahre",
    );
    assert_terms(
        "<html lang=en><title>Cafeteras para la oficina</title><p>Alquilamos cafeteras superautomáticas para
         oficinas de todo el país. También reparamos las que ya tienes, porque nuestra empresa cuenta con
         técnicos propios que están cerca de ti desde el lunes hasta el sábado.",
        "cafeteras oficina",
        "para todo tambien las que ya tienes porque nuestra cuenta con propios estan desde hasta lunes sabado",
    );
    assert_terms(
        "<title>Logiciel de comptabilité</title><p>Notre logiciel de comptabilité aide les indépendants à suivre
         leurs factures. Aujourd'hui, plus de mille cabinets l'utilisent parce qu'il est simple, et ceux qui
         n'avaient jamais tenu leurs comptes y arrivent aussi.",
        "logiciel comptabilite factures",
        "notre les leurs aujourd hui plus parce qu est et ceux qui avaient jamais aussi",
    );
    assert_terms(
        "<title>Pacotes de viagem</title><p>Organizamos pacotes de viagem para o nordeste. Você escolhe a pousada e nós
         cuidamos do resto, porque sabemos que não é fácil planejar tudo isso quando também se trabalha.",
        "viagem pacotes pousada",
        "voce nos porque nao tudo isso quando tambem para do",
    );
}

#[test]
fn japanese_terms_are_words() {
    let found = texts(
        "<html lang=ja><title>コーヒーメーカーと会計ソフトの専門店</title><p>業務用コーヒーメーカーの販売と修理を行っています。
         クラウド会計ソフトで確定申告をかんたんに。お客様の営業時間に合わせて、月曜日から対応します。",
    );
    for term in ["コーヒーメーカー", "会計ソフト", "修理", "確定申告"] {
        assert!(found.iter().any(|found| found == term), "{term}: {found:?}");
    }
    for junk in [
        "コー",
        "ーヒ",
        "から",
        "お客様",
        "月曜日",
        "営業時間",
        "行っ",
        "対応",
        "用",
    ] {
        assert!(
            !found.iter().any(|found| found == junk),
            "{junk}: {found:?}"
        );
    }
}

#[test]
fn a_name_in_japanese_leaves_the_words_that_share_its_characters() {
    let page = page(
        "<html lang=ja><title>会計堂</title><p>会計堂は会計ソフトと請求書の店です。弥生会計もあります。",
    );
    let names = HashSet::from(["弥生会計".to_owned()]);
    let terms = terms(&[page], &names);
    let found: Vec<&str> = terms.iter().map(|term| term.text.as_str()).collect();
    assert!(
        found.contains(&"会計ソフト") && !found.contains(&"弥生会計"),
        "{found:?}"
    );
}

#[test]
fn a_standard_word_of_web_pages_counts_where_it_is_the_subject() {
    let shop = "<title>Garden chairs</title><h1>Chairs of oak</h1><p>Oak lasts.<p>Log in with your password.
         <p>Forgot your password?<p>Change your password.";
    assert!(!texts(shop).iter().any(|text| text.contains("password")));
    let manager = "<title>Keyward, the password manager</title><h1>Every password in one vault</h1>
         <h2>Share a password safely</h2><p>Fill in a password with one click.<p>Find a weak password.
         <p>Every password is encrypted.";
    assert!(texts(manager).contains(&"password".to_owned()));
}
