use compiling::compile::{Seed, compile_seeds};
use domain::{
    Focus, Instructions, Sensitivity,
    instructions::{MAX_PHRASES, NameKind},
};
use matching::Plan;
use serde_json::{Value, json};

use super::{MAX_NEW_TERMS, MAX_OWN, MAX_UNSEEN_TERMS, MAX_UNSEEN_WATCHED, accept};
use crate::refine::{Material, Proposal};

const PAGE: &str = "<title>Brewforge espresso machines</title><main><h1>Lever espresso machines</h1>\
    <p>Our lever machines pull espresso by hand. Every portafilter is milled. Compare us with Steamtown \
    and with Crema Nova before you choose a boiler and a grinder.</p></main>";

fn compiled() -> (Instructions, Material) {
    let url = "https://brewforge.example/".parse().unwrap();
    let read = || Seed::read(&url, Some("text/html"), PAGE.as_bytes(), "FORUM", &[]).unwrap();
    let material = Material::of(&[read()]);
    let compiled = compile_seeds(
        [read()],
        Focus::Sales,
        Sensitivity::Balanced,
        &[],
        "FORUM",
        &[],
    )
    .unwrap();
    (compiled, material)
}

fn accepted(proposal: Value, names_are_given: bool) -> (Instructions, Instructions) {
    let (compiled, material) = compiled();
    let proposal: Proposal = serde_json::from_value(proposal).unwrap();
    let refined = accept(&compiled, proposal, &material, names_are_given);
    Plan::compile(&refined).unwrap();
    (compiled, refined)
}

fn weight(instructions: &Instructions, text: &str) -> Option<f64> {
    let mut terms = instructions.include.iter();
    terms.find(|term| term.text == text).map(|term| term.weight)
}

#[test]
fn terms_names_and_brief_are_refined() {
    let (compiled, refined) = accepted(
        json!({
            "terms": [{"text": "Portafilter", "weight": 0.01}, {"text": "tamper", "weight": 3},
                      {"text": "boiler and a grinder", "weight": 1}],
            "names": [{"text": "Steamtown", "kind": "WATCHED"}, {"text": "Pressobar", "kind": "WATCHED"},
                      {"text": "Brewforge", "kind": "OWN"}],
            "brief": "Posts of people\n who look for a lever machine.",
        }),
        false,
    );
    let (before, after) = (
        weight(&compiled, "portafilter"),
        weight(&refined, "portafilter"),
    );
    let (before, after) = (before.unwrap(), after.unwrap());
    assert!((after - before * 0.4).abs() < 0.002, "{before} {after}");
    let tamper = weight(&refined, "tamper").unwrap();
    assert!((0.1..1.0).contains(&tamper), "no page has it: {tamper}");
    assert_eq!(weight(&refined, "boiler and a grinder"), None, "too long");
    let watched = refined
        .names
        .iter()
        .filter(|name| name.kind == NameKind::Watched);
    let watched: Vec<&str> = watched.map(|name| name.text.as_str()).collect();
    assert!(
        watched.contains(&"Steamtown") && watched.contains(&"Pressobar"),
        "{watched:?}"
    );
    let own = |instructions: &Instructions| {
        let own = instructions
            .names
            .iter()
            .filter(|name| name.kind == NameKind::Own);
        own.count()
    };
    assert_eq!(own(&refined), own(&compiled), "it was known");
    assert_eq!(
        refined.brief,
        "Posts of people who look for a lever machine."
    );
}

#[test]
fn what_is_sold_is_replaced_by_phrases_that_the_pages_support() {
    let sells = json!({"summary": "Lever machines\n for the home.",
        "offers": [" lever espresso machine ", "hand-milled portafilter", "casino bonus", "Lever Espresso Machine", "espresso boiler"]});
    let (_, refined) = accepted(json!({ "sells": sells }), false);
    let sold = refined.sells.unwrap();
    assert_eq!(sold.summary, "Lever machines for the home.");
    let expected = [
        "lever espresso machine",
        "hand-milled portafilter",
        "espresso boiler",
    ];
    assert_eq!(sold.offers, expected);
}

#[test]
fn phrases_that_cannot_be_used_are_left_out() {
    let mut offers: Vec<Value> = [
        "casino bonus",
        "<b>espresso</b>",
        "espresso at https://evil.example/",
        "espresso\u{1b}[31m",
        "...",
        "",
    ]
    .map(Value::from)
    .into();
    offers.push(json!("espresso ".repeat(12)));
    let (compiled, refined) = accepted(
        json!({"sells": {"summary": "x".repeat(501), "offers": offers}}),
        false,
    );
    assert!(compiled.sells.is_some());
    assert_eq!(refined.sells, compiled.sells);
    offers = (0..1_000)
        .map(|n| json!(format!("espresso machine {n}")))
        .collect();
    let (_, refined) = accepted(json!({"sells": {"offers": offers}}), false);
    let sold = refined.sells.unwrap();
    assert_eq!(sold.offers.len(), MAX_PHRASES);
    assert_eq!(sold.summary, compiled.sells.unwrap().summary);
}

#[test]
fn model_that_obeys_a_page_changes_little() {
    let many = |kind: &str| {
        (0..1_000)
            .map(|i| json!({"text": format!("Obeyed{i}"), "kind": kind}))
            .collect::<Vec<_>>()
    };
    let mut names = many("OWN");
    names.truncate(30);
    names.extend(many("WATCHED"));
    let mut terms: Vec<Value> = vec![
        json!({"text": "the", "weight": 3}),
        json!({"text": "x\u{0}y", "weight": 3}),
        json!({"text": "...", "weight": 3}),
        json!({"text": "a".repeat(101), "weight": 3}),
        json!({"text": "espresso", "weight": -1e300}),
        json!({"text": "espresso", "weight": 1e300}),
    ];
    terms.extend((0..1_000).map(|i| json!({"text": format!("obey{i}"), "weight": 1e300})));
    let proposal =
        json!({"terms": terms, "names": names, "brief": "See https://evil.example/ <b>now</b>"});
    let (compiled, refined) = accepted(proposal, false);

    let new = refined.include.len() - compiled.include.len();
    assert!(
        new <= MAX_UNSEEN_TERMS && MAX_UNSEEN_TERMS < MAX_NEW_TERMS,
        "{new}"
    );
    assert!(
        refined
            .include
            .iter()
            .all(|term| term.weight > 0.0 && term.weight <= 4.5)
    );
    assert!(weight(&refined, "the").is_none() && weight(&refined, "x\u{0}y").is_none());
    let (before, after) = (
        weight(&compiled, "espresso").unwrap(),
        weight(&refined, "espresso").unwrap(),
    );
    assert!(after >= before * 0.39, "{before} {after}");
    let obeyed = |kind| {
        refined
            .names
            .iter()
            .filter(|n| n.kind == kind && n.text.starts_with("Obeyed"))
            .count()
    };
    assert_eq!(
        obeyed(NameKind::Own),
        0,
        "of {MAX_OWN} at most, and only such as the pages have"
    );
    assert!(obeyed(NameKind::Watched) <= MAX_UNSEEN_WATCHED);
    assert_eq!(refined.brief, compiled.brief);
    assert_eq!(
        (&refined.feeds, &refined.require, &refined.exclude),
        (&compiled.feeds, &compiled.require, &compiled.exclude)
    );
    assert_eq!(
        (refined.focus, refined.threshold),
        (compiled.focus, compiled.threshold)
    );
}

#[test]
fn names_given_by_the_customer_are_watched() {
    let (compiled, refined) = accepted(
        json!({"names": [{"text": "Steamtown", "kind": "WATCHED"}]}),
        true,
    );
    assert_eq!(refined.names, compiled.names);
}

#[test]
fn answer_with_unknown_fields_is_rejected() {
    for answer in [
        json!({"feeds": ["hackernews:newest"]}),
        json!({"exclude": ["espresso"]}),
        json!({"require": [["x"]]}),
        json!({"threshold": 0}),
        json!({"terms": [{"text": "x", "weight": "3"}]}),
        json!({"names": [{"text": "x", "kind": "OWN", "aliases": ["y"]}]}),
    ] {
        assert!(
            serde_json::from_value::<Proposal>(answer.clone()).is_err(),
            "{answer}"
        );
    }
}
