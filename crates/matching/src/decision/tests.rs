use domain::{FeedName, Focus, Instructions};
use proptest::prelude::*;
use serde_json::json;

use super::{Decision, Reason, evaluate};
use crate::{Evidence, Field, Plan, PostText, steps};

fn decide(instructions: serde_json::Value, text: &str) -> Decision {
    decide_titled(instructions, None, text)
}

fn decide_titled(instructions: serde_json::Value, title: Option<&str>, text: &str) -> Decision {
    let instructions: Instructions = serde_json::from_value(instructions).unwrap();
    let plan = Plan::compile(&instructions).unwrap();
    evaluate(&plan, &PostText::new(title, Some(text)), None)
}

#[test]
fn handwritten_instructions_decide_predictably() {
    let plan = json!({"include": [
        {"text": "crm", "weight": 0.7}, {"text": "CRM", "weight": 0.7}, {"text": "invoice", "weight": 0.1}],
        "threshold": 0.8});
    let found = decide(plan.clone(), "A CRM and an invoice, another CRM");
    assert_eq!(
        (found.value, found.score, found.terms),
        (true, 0.8, vec!["CRM".into(), "invoice".into()])
    );
    let plural = decide(plan.clone(), "A CRM and invoices");
    assert_eq!((plural.reason, plural.score), (Reason::BelowThreshold, 0.7));
    assert_eq!(decide(plan, "nothing of it").reason, Reason::NoTerm);
}

#[test]
fn groups_and_exclusions_decide_alone() {
    let plan =
        json!({"require": [["bike", "bicycle"], ["rent", "hire"]], "exclude": ["motor bike"]});
    assert!(decide(plan.clone(), "Where to rent a bicycle?").value);
    assert_eq!(
        decide(plan.clone(), "Where to rent?").reason,
        Reason::Require
    );
    assert_eq!(
        decide(plan, "hire a motor bike or a bike").reason,
        Reason::Exclude
    );
    assert!(decide(json!({"exclude": ["spam"]}), "anything").value);
    assert!(decide(json!({}), "").value);
}

#[test]
fn case_sensitive_name_counts_if_the_steps_are_spent() {
    let plan = json!({"names": [{"text": "Apple Pay", "kind": "OWN", "caseSensitive": true}]});
    let spent = |text| steps::within(0, || decide(plan.clone(), text)).0;
    assert!(spent("An apple, and Apple Pay").value);
    assert_eq!(spent("An Apple").reason, Reason::NoTerm);
}

#[test]
fn plan_of_only_names_requires_a_name() {
    let plan = json!({"names": [{"text": "Apple", "kind": "OWN", "caseSensitive": true, "context": ["iphone", "mac"]}]});
    assert!(decide(plan.clone(), "My Apple iPhone").value);
    assert!(decide(plan.clone(), "thanks @apple, the mac is fine").value);
    for text in ["an apple a day, and a mac", "Apple pie", "My apple iPhone"] {
        assert_eq!(decide(plan.clone(), text).reason, Reason::NoTerm, "{text}");
    }
}

#[test]
fn sales_accepts_inflections_and_requires_a_need() {
    let plan = json!({"focus": "SALES", "include": [
        {"text": "commuter bike", "weight": 3.0}, {"text": "pannier", "weight": 2.5}, {"text": "cycling", "weight": 2.0}]});
    let wish = decide_titled(
        plan.clone(),
        Some("Can anyone recommend a commuter bike with panniers?"),
        "I am looking for something to cycle to work.",
    );
    assert!(wish.value, "{wish:?}");
    assert_eq!(wish.terms, ["commuter bike", "pannier", "cycling"]);
    let story = decide_titled(
        plan.clone(),
        Some("A nice day"),
        "We met old friends and had lunch. Later I put the bags on, panniers as ever, and rode home.",
    );
    assert!(story.score < wish.score, "{story:?}");
    assert!(!story.value, "{story:?}");
    let other = decide(
        plan,
        "Can anyone recommend a good laptop? Looking for something cheap, what should I buy",
    );
    assert_eq!((other.reason, other.score), (Reason::NoTerm, 0.0));
}

#[test]
fn a_plan_of_one_term_can_match() {
    let plan = json!({"focus": "SALES", "include": [{"text": "crm", "weight": 0.3}]});
    let wish = decide_titled(plan, Some("Can anyone recommend a CRM?"), "");
    assert!(wish.value, "{wish:?}");
}

#[test]
fn a_competitor_must_be_named() {
    let plan = json!({"focus": "COMPETITOR", "names": [{"text": "HubSpot", "kind": "WATCHED"}],
        "include": [{"text": "crm", "weight": 1.0}]});
    let title = |title| decide_titled(plan.clone(), Some(title), "");
    assert!(title("Hubspot raises its prices again").value);
    assert!(title("Is Hubspot better than Salesforce?").value);
    let unnamed = title("Which CRM is better, the old or the new? A comparison of crm vs crm");
    assert_eq!((unnamed.value, unnamed.score), (false, 0.0));
}

#[test]
fn a_name_in_a_link_or_a_price_list_is_no_mention() {
    let plan = json!({"focus": "COMPETITOR", "names": [{"text": "Newegg", "kind": "WATCHED"}],
        "include": [{"text": "computer", "weight": 1.0}]});
    let list = "My build:\n\nCPU | [Acme 5](http://newegg.com/acme) | $199 @ Newegg\n\n\
                More at http://www.newegg.com/list";
    let listed = decide_titled(plan.clone(), Some("What do you think of this build?"), list);
    let named = decide_titled(plan, Some("Newegg refused my return"), "");
    assert!(!listed.value && named.value, "{listed:?} {named:?}");
}

#[test]
fn competitor_score_is_lower_where_the_rival_is_a_platform() {
    let plan = json!({"focus": "COMPETITOR", "include": [{"text": "tablet", "weight": 2.0}],
        "names": [{"text": "iPad", "kind": "WATCHED"}]});
    let score = |title| decide_titled(plan.clone(), Some(title), "").score;
    assert!(
        score("My review of the iPad tablet") > score("My review of an app for the iPad tablet")
    );
    assert!(score("The new iPad is out") > score("The new iPad case is out"));
}

#[test]
fn goods_for_a_rivals_product_are_not_the_rival() {
    let plan = json!({"focus": "COMPETITOR", "names": [{"text": "Procreate", "kind": "WATCHED"}]});
    let plan = Plan::compile(&serde_json::from_value(plan).unwrap()).unwrap();
    let is_platform = |title| {
        let post = PostText::new(Some(title), None);
        Evidence::weigh(&plan, &post).unwrap().name_is_platform
    };
    for title in [
        "Where do you find the best Procreate brushes?",
        "I made a free Procreate brush pack for all of you",
        "Which of the Procreate plug-ins do you use every day?",
    ] {
        assert_eq!(is_platform(title), 1.0, "{title}");
    }
    for title in [
        "Is there a better brush in Procreate?",
        "I am leaving Procreate, what should I use?",
    ] {
        assert_eq!(is_platform(title), 0.0, "{title}");
    }
}

#[test]
fn name_of_the_site_at_the_end_of_a_title_is_no_mention() {
    let plan = json!({"focus": "COMPETITOR", "names": [{"text": "YouTube", "kind": "WATCHED"}]});
    let delivers = |title| decide_titled(plan.clone(), Some(title), "").value;
    assert!(!delivers("My review of a camera - YouTube"));
    assert!(!delivers("My review of a camera | YouTube.com"));
    assert!(delivers("My review of YouTube"));
    assert!(delivers("Vimeo - YouTube comparison"));
}

#[test]
fn crisis_requires_the_own_name_and_a_complaint() {
    let plan = json!({"focus": "CRISIS", "names": [{"text": "United Airlines", "kind": "OWN", "aliases": ["@united"]}]});
    assert!(decide(plan.clone(), "@united you lost my bag, worst airline ever").value);
    assert!(!decide(plan.clone(), "@united thank you, great flight").value);
    assert!(!decide(plan, "the united workers were delayed, terrible").value);
}

#[test]
fn only_watched_feeds_count() {
    let feed: FeedName = "hackernews:newest".parse().unwrap();
    let plan = Plan::compile(&Instructions::default()).unwrap();
    let post = PostText::new(Some("hello"), None);
    assert_eq!(
        evaluate(&plan, &post, Some(&feed)).reason,
        Reason::NotWatched
    );
    assert!(evaluate(&plan.watching([feed.clone()]), &post, Some(&feed)).value);
}

#[test]
fn scripts_without_spaces_match_as_substrings() {
    let plan = json!({"include": [{"text": "東京タワー", "weight": 1.0}]});
    assert!(decide(plan.clone(), "昨日は東京タワーに行きました").value);
    assert!(!decide(plan, "東京の古いタワー").value);
    let plan = json!({"include": [{"text": "애플", "weight": 1.0}]});
    assert!(decide(plan, "새 애플은 비싸다").value);
}

#[test]
fn names_are_found_as_they_are_written() {
    for (name, text) in [
        ("McDonald's", "at McDonalds today"),
        ("McDonald's", "McDonald’s fries"),
        ("Yahoo! Mail", "is Yahoo! Mail down, or yahoo mail?"),
        ("Yahoo! Mail", "yahoo mail"),
        ("Dr. Martens", "my dr martens"),
        ("AT&T", "ATT again"),
        ("Coca-Cola", "a coca cola"),
        ("Coca-Cola", "#CocaCola"),
    ] {
        let plan = json!({"names": [{"text": name, "kind": "OWN"}]});
        assert!(decide(plan, text).value, "{name} in {text}");
    }
    let plan = json!({"names": [{"text": "Adam's", "kind": "OWN"}]});
    assert!(!decide(plan, "Adam said so").value);
}

#[test]
fn a_joined_word_with_the_stem_of_its_part_is_found() {
    for term in ["the creat-e tool", "The abab-é+京"] {
        let plan = json!({"focus": "SALES", "include": [{"text": term, "weight": 1.0}]});
        assert_eq!(decide(plan, term).terms, [term]);
    }
}

#[test]
fn spans_show_the_positions_of_terms() {
    let plan = json!({"include": [{"text": "crm tool", "weight": 1.0}, {"text": "café", "weight": 1.0}],
        "require": [["help"]], "threshold": 2.0});
    let plan = Plan::compile(&serde_json::from_value(plan).unwrap()).unwrap();
    let (title, text) = ("  Ünïcode CRM tool!", "\n Any help? Cafe.");
    let found = evaluate(&plan, &PostText::new(Some(title), Some(text)), None);
    let shown: Vec<(String, String)> = found
        .spans
        .into_iter()
        .map(|span| {
            let field = if span.field == Field::Title {
                title
            } else {
                text
            };
            let chars = field.chars().skip(span.start).take(span.end - span.start);
            (chars.collect(), span.term)
        })
        .collect();
    let expected = [("CRM tool", "crm tool"), ("help", "help"), ("Cafe", "café")];
    assert_eq!(shown, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    let refused = evaluate(&plan, &PostText::new(None, Some("help, a crm tool")), None);
    assert!(refused.spans.is_empty() && !refused.value);
}

#[test]
fn number_of_spans_is_limited() {
    let plan = json!({"include": [{"text": "crm", "weight": 1.0}, {"text": "tool", "weight": 1.0}], "threshold": 2.0});
    let plan = Plan::compile(&serde_json::from_value(plan).unwrap()).unwrap();
    let text = "crm tool ".repeat(300);
    let found = evaluate(&plan, &PostText::new(None, Some(&text)), None);
    assert_eq!(found.spans.len(), 100);
}

#[test]
fn number_of_terms_is_limited_to_the_strongest() {
    let word = |number: usize| format!("word{number}");
    let include: Vec<_> = (0..500)
        .map(|number| json!({"text": word(number), "weight": if number == 499 { 2 } else { 1 }}))
        .collect();
    let text: Vec<String> = (0..500).map(word).collect();
    let plan = json!({"include": include, "threshold": 1});
    let found = decide(plan, &text.join(" "));
    assert_eq!((found.terms.len(), found.score), (50, 501.0));
    assert_eq!(found.terms[0], "word499");
}

#[test]
fn repetitive_post_is_decided_quickly() {
    let terms: Vec<_> = (1..=50)
        .flat_map(|count| {
            [
                json!({"text": "a ".repeat(count), "weight": 1.0}),
                json!({"text": "a ".repeat(count) + "b", "weight": 1.0}),
            ]
        })
        .collect();
    let instructions = serde_json::from_value(json!({"focus": "SALES", "include": terms})).unwrap();
    let plan = Plan::compile(&instructions).unwrap();
    let text = "a ".repeat(100_000) + "b";
    let post = PostText::new(None, Some(&text));
    // What tries each term at each place, word by word, does not end within the runner's limit of minutes.
    assert!(evaluate(&plan, &post, None).score > 0.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn term_matches_its_own_text(term in "([a-cA-C1 .'&@#+:!é東京-]|ab|The |[.] ){1,12}", focus in any::<bool>()) {
        let focus = focus.then_some(Focus::Sales);
        let instructions = serde_json::from_value(json!({"include": [{"text": term, "weight": 1.0}], "focus": focus})).unwrap();
        if let Ok(plan) = Plan::compile(&instructions) {
            let decision = evaluate(&plan, &PostText::new(None, Some(&term)), None);
            prop_assert_eq!(decision.terms, vec![term]);
        }
    }

    #[test]
    fn any_term_and_any_post_are_accepted(term in "\\PC{1,30}", text in "(\\PC|\n){0,200}", cased in any::<bool>()) {
        let instructions: Instructions = serde_json::from_value(json!({"focus": "CRISIS",
            "include": [{"text": term, "weight": 1.0}], "names": [{"text": term, "kind": "OWN", "caseSensitive": cased}]})).unwrap();
        if let Ok(plan) = Plan::compile(&instructions) {
            let post = PostText::new(Some(&text), Some(&format!("{text} {term} {text}")));
            let score = evaluate(&plan, &post, None).score;
            prop_assert!((0.0..=1.0).contains(&score));
        }
    }
}
