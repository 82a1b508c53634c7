//! A lower limit for the quality of decisions, on invented customers and posts: a change that makes the product worse
//! must not go unnoticed. The results on real posts are in `docs/matching-quality.md`.

use std::{collections::BTreeSet, path::Path};

use compiling::evaluate;
use domain::{Focus, Sensitivity};

fn predictions() -> (BTreeSet<String>, BTreeSet<String>, [Focus; 3]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/bench");
    let posts = folder.join("posts.jsonl");
    let mut gold = BTreeSet::new();
    for line in std::fs::read_to_string(&posts).unwrap().lines() {
        let post: serde_json::Value = serde_json::from_str(line).unwrap();
        for relevant in post["relevant"].as_array().unwrap() {
            gold.insert(format!(
                "{}:{}",
                relevant.as_str().unwrap(),
                post["id"].as_str().unwrap()
            ));
        }
    }
    let mut found = BTreeSet::new();
    evaluate::run(
        &folder.join("customers"),
        &posts,
        None,
        Sensitivity::Balanced,
        None,
        |p| {
            if p.value {
                found.insert(format!("{}:{}:{}", p.customer, p.focus.as_str(), p.post_id));
            }
            Ok(())
        },
    )
    .unwrap();
    (gold, found, Focus::ALL)
}

#[test]
fn each_focus_stays_above_its_floor() {
    let (gold, found, foci) = predictions();
    for focus in foci {
        let of = |all: &BTreeSet<String>| -> BTreeSet<String> {
            let own = all.iter().filter(|key| key.contains(focus.as_str()));
            own.cloned().collect()
        };
        let (gold, found) = (of(&gold), of(&found));
        let hits = gold.intersection(&found).count() as f64;
        let f1 = 2.0 * hits / (gold.len() + found.len()) as f64;
        let floor = match focus {
            Focus::Sales | Focus::Crisis => 0.75,
            Focus::Competitor => 0.9,
        };
        let missed: Vec<_> = gold.difference(&found).collect();
        let wrong: Vec<_> = found.difference(&gold).collect();
        assert!(
            f1 >= floor,
            "{focus:?} {f1:.2}: missed {missed:?}, wrong {wrong:?}"
        );
    }
}
