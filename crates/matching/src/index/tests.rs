//! Compares the index with evaluating every plan, on random plans and posts.

use std::sync::Arc;

use domain::{FeedName, Id, Instructions, ManagerName, PlanVersion};
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use serde_json::{Value, json};

use super::{Change, Index, IndexBuilder, LiveIndex};
use crate::{Decision, Plan, PostText, evaluate, plan::Rule, steps, text::block::PORTABLY};

/// A small vocabulary, so that plans and posts share words; several words have more than one form, script or spelling.
const WORDS: &[&str] = &[
    "crm",
    "bike",
    "bikes",
    "biking",
    "wi-fi",
    "wifi",
    "fi",
    "Apple",
    "apple",
    "@acme",
    "acme",
    "acme's",
    "node.js",
    "c++",
    "the",
    "recommend",
    "looking for",
    "terrible",
    "better than",
    "東京",
    "京都",
    "tower",
    "e-mail",
    "café",
    "project management",
    "management",
    "refund",
    "a",
    "AT&T",
    "worth it",
    "Yahoo! Mail",
    "yahoo",
    "mail",
    "🔥",
];
const FEEDS: &[&str] = &["hackernews:newest", "reddit:r/rust", "lemmy:c/bikes"];

fn numbered(number: i64) -> PlanVersion {
    PlanVersion {
        number,
        ..PlanVersion::default()
    }
}

fn name(number: u64) -> ManagerName {
    let id = |number: u64| -> Id { format!("{number:0>26}").parse().unwrap() };
    ManagerName {
        namespace: id(number % 3),
        manager: id(number),
    }
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => prop::sample::select(WORDS).prop_filter("has a word", |w| *w != "🔥").prop_map(str::to_owned),
        2 => prop::collection::vec(prop::sample::select(WORDS), 1..3).prop_map(|w| format!("x {}", w.join(" "))),
        2 => prop::collection::vec(prop::sample::select(WORDS), 2..3).prop_map(|w| format!("{} the", w.join(" "))),
    ]
}

fn texts(range: std::ops::Range<usize>) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(word(), range)
}

fn watched_name() -> impl Strategy<Value = Value> {
    (
        word(),
        any::<bool>(),
        texts(0..2),
        any::<bool>(),
        texts(0..2),
    )
        .prop_map(|(text, own, aliases, cased, context)| {
            json!({"text": text, "kind": if own {"OWN"} else {"WATCHED"}, "aliases": aliases,
            "caseSensitive": cased, "context": context})
        })
}

fn plan() -> impl Strategy<Value = Arc<Plan>> {
    let weight = prop_oneof![4 => Just(1.0), 2 => 0.0..3.0, 1 => -1.0..0.5];
    let include = prop::collection::vec((word(), weight), 0..5);
    let focus = prop::option::weighted(
        0.6,
        prop::sample::select(vec!["SALES", "COMPETITOR", "CRISIS"]),
    );
    let threshold = prop::option::of(prop_oneof![
        0.0..1.0,
        Just(0.0),
        Just(-1.0),
        Just(1.0),
        Just(2.0)
    ]);
    let require = prop::collection::vec(texts(1..3), 0..3);
    let exclude = prop_oneof![2 => texts(0..1), 1 => texts(0..2)];
    let feeds = prop::sample::subsequence(FEEDS, 0..=FEEDS.len());
    let names = prop::collection::vec(watched_name(), 0..3);
    (include, focus, threshold, require, exclude, feeds, names).prop_map(
        |(include, focus, threshold, require, exclude, feeds, names)| {
            let include: Vec<Value> = include.iter().map(|(text, weight)| json!({"text": text, "weight": weight})).collect();
            let json = json!({"include": include, "focus": focus, "threshold": threshold, "require": require,
                "exclude": exclude, "feeds": feeds, "names": names});
            let instructions: Instructions = serde_json::from_value(json).unwrap();
            Arc::new(Plan::compile(&instructions).unwrap())
        },
    )
}

fn post() -> impl Strategy<Value = PostText> {
    let words = |range| {
        let word =
            prop_oneof![9 => prop::sample::select(WORDS).prop_map(str::to_owned), 1 => "\\PC{0,6}"];
        let gap = prop::sample::select(vec![" ", " ", " ", ". ", ", ", "-", "\n\n", ""]);
        prop::collection::vec((word, gap), range).prop_map(|all| {
            all.into_iter()
                .map(|(word, gap)| word + gap)
                .collect::<String>()
        })
    };
    (words(0..6), words(0..30)).prop_map(|(title, text)| PostText::new(Some(&title), Some(&text)))
}

fn plans(count: usize) -> impl Strategy<Value = Vec<(ManagerName, Arc<Plan>)>> {
    prop::collection::vec(plan(), count).prop_map(|plans| (1_u64..).map(name).zip(plans).collect())
}

/// Panics where the index and evaluating every plan differ; returns how many pairs were compared, and how many matched.
fn compare(
    index: &Index,
    plans: &[(ManagerName, Arc<Plan>)],
    posts: &[PostText],
) -> (usize, usize) {
    let mut matched = 0;
    for post in posts {
        for feed in FEEDS {
            let feed: FeedName = feed.parse().unwrap();
            let mut expected: Vec<_> = plans
                .iter()
                .map(|(name, plan)| (*name, evaluate(plan, post, Some(&feed))))
                .filter(|(_, decision)| decision.value)
                .collect();
            expected.sort_by_key(|(name, _)| *name);
            matched += expected.len();
            // A new copy, so that nothing that the definition computed is reused.
            let again = post.again();
            for (name, decision) in &expected {
                assert_eq!(index.explain(name, &again).as_ref(), Some(decision));
            }
            assert_eq!(index.matches(&again, &feed), expected);
        }
    }
    (plans.len() * posts.len() * FEEDS.len(), matched)
}

#[test]
fn index_equals_evaluating_every_plan() {
    let config = ProptestConfig {
        cases: 150,
        max_shrink_iters: 200,
        ..ProptestConfig::default()
    };
    let mut runner = TestRunner::new(config);
    let pairs = std::cell::Cell::new((0, 0));
    let input = (plans(60), prop::collection::vec(post(), 40));
    runner
        .run(&input, |(plans, posts)| {
            let index = Index::build(plans.clone(), numbered(1));
            let (compared, matched) = compare(&index, &plans, &posts);
            pairs.set((pairs.get().0 + compared, pairs.get().1 + matched));
            Ok(())
        })
        .unwrap();
    let (compared, matched) = pairs.get();
    assert!(
        compared >= 1_000_000 && matched * 50 > compared && matched * 2 < compared,
        "{matched} of {compared}"
    );
}

/// The bounds must not drop a post whose score is exactly the threshold.
#[test]
fn scores_exactly_at_the_threshold_match() {
    let mut runner = TestRunner::new(ProptestConfig::with_cases(60));
    let matched = std::cell::Cell::new([0; 2]);
    let input = (plans(60), prop::collection::vec(post(), 20));
    runner
        .run(&input, |(plans, posts)| {
            for post in &posts {
                let at_the_score = |(name, plan): &(ManagerName, Arc<Plan>)| {
                    let mut plan = Plan::clone(plan).watching([FEEDS[0].parse().unwrap()]);
                    let score = evaluate(&plan, post, None).score;
                    if let Rule::Focus { threshold, .. } = &mut plan.rule
                        && score > 0.0
                    {
                        *threshold = score;
                    }
                    (*name, Arc::new(plan))
                };
                let plans: Vec<_> = plans.iter().map(at_the_score).collect();
                let index = Index::build(plans.clone(), numbered(1));
                compare(&index, &plans, std::slice::from_ref(post));
                let mut counts = matched.get();
                for (_, plan) in plans.iter().filter(|(_, plan)| plan.focus().is_some()) {
                    let decision = evaluate(plan, post, None);
                    counts[usize::from(plan.names.is_empty())] += usize::from(decision.value);
                }
                matched.set(counts);
            }
            Ok(())
        })
        .unwrap();
    let [_, without_names] = matched.get();
    assert!(without_names > 500, "{:?}", matched.get());
}

#[test]
fn order_and_history_of_plans_do_not_matter() {
    let mut runner = TestRunner::new(ProptestConfig::with_cases(8));
    let steps = prop::collection::vec((1..150_u64, prop::option::weighted(0.8, plan())), 300);
    runner
        .run(
            &(steps, prop::collection::vec(post(), 20)),
            |(steps, posts)| {
                let live = LiveIndex::default();
                let mut alive = std::collections::BTreeMap::new();
                for (version, chunk) in (1..).zip(steps.chunks(7)) {
                    let changes = chunk.iter().map(|(number, plan)| {
                        let name = name(*number);
                        match plan {
                            Some(plan) => {
                                alive.insert(name, Arc::clone(plan));
                                Change::Put(name, Arc::clone(plan))
                            }
                            None => {
                                alive.remove(&name);
                                Change::Remove(name)
                            }
                        }
                    });
                    live.apply(changes.collect::<Vec<_>>(), numbered(version));
                    if version % 5 == 0 {
                        live.merge();
                    }
                }
                let alive: Vec<_> = alive.into_iter().rev().collect();
                let index = live.load();
                assert_eq!((index.len(), index.version().number), (alive.len(), 43));
                for (name, plan) in &alive {
                    assert_eq!(index.plan(name).as_ref(), Some(&**plan));
                }
                compare(&index, &alive, &posts);
                compare(&Index::build(alive.clone(), numbered(1)), &alive, &posts);
                compare(&in_pages(&alive, 20), &alive, &posts);
                Ok(())
            },
        )
        .unwrap();
}

fn in_pages(plans: &[(ManagerName, Arc<Plan>)], size: usize) -> Index {
    let mut builder = IndexBuilder::default();
    for page in plans.chunks(size) {
        builder.add(page.to_vec());
    }
    builder.finish(numbered(1))
}

#[test]
fn index_that_is_built_in_pages_keeps_no_plan_of_them() {
    let plan = |n: u64| -> Arc<Plan> {
        let json = json!({"feeds": [FEEDS[0]], "require": [["crm", format!("word{n}")]]});
        let instructions: Instructions = serde_json::from_value(json).unwrap();
        Arc::new(Plan::compile(&instructions).unwrap())
    };
    let mut builder = IndexBuilder::default();
    for page in 0..10 {
        let plans: Vec<_> = (page * 10..page * 10 + 10)
            .map(|n| (name(n), plan(n)))
            .collect();
        let unpacked: Vec<_> = plans.iter().map(|(_, plan)| Arc::downgrade(plan)).collect();
        builder.add(plans);
        assert!(unpacked.iter().all(|plan| plan.upgrade().is_none()));
    }
    let index = builder.finish(numbered(1));
    assert_eq!((index.len(), index.tiers.len()), (100, 1));
    assert_eq!(index.plan(&name(42)).as_ref(), Some(&*plan(42)));
}

#[test]
fn many_changes_are_merged() {
    let instructions: Instructions =
        serde_json::from_value(json!({"feeds": [FEEDS[0]], "require": [["crm"]]})).unwrap();
    let plan = Arc::new(Plan::compile(&instructions).unwrap());
    let live = LiveIndex::default();
    for number in 0..3_000 {
        live.apply([Change::Put(name(number), Arc::clone(&plan))], numbered(1));
    }
    live.apply(
        (0..2_500).map(|number| Change::Remove(name(number))),
        numbered(2),
    );
    let index = live.load();
    let found = index.matches(
        &PostText::new(Some("A CRM"), None),
        &FEEDS[0].parse().unwrap(),
    );
    assert_eq!(
        (index.len(), found.len(), index.version().number),
        (500, 500, 2)
    );
    // No merge ran, and no change folded more tiers than its limit allows.
    let most = super::TOO_MANY_TIERS + 2 * 3_000 / super::FOLDED;
    assert!(index.tiers.len() <= most, "{}", index.tiers.len());
    live.merge();
    assert!(!live.is_due() && live.load().len() == 500);
}

/// Plans, posts and decisions; the same in every process.
fn decisions(index: &Index, posts: &[PostText]) -> Vec<(ManagerName, Decision)> {
    let mut decisions = Vec::new();
    for post in posts {
        for feed in FEEDS {
            decisions.extend(index.matches(&post.again(), &feed.parse().unwrap()));
        }
    }
    decisions
}

fn sample() -> (Index, Vec<PostText>) {
    let mut runner = TestRunner::deterministic();
    let input = (plans(300), prop::collection::vec(post(), 100));
    let (plans, posts) = input.new_tree(&mut runner).unwrap().current();
    (Index::build(plans, numbered(1)), posts)
}

#[test]
fn decisions_are_equal_without_vector_instructions() {
    let (index, posts) = sample();
    let vectors = decisions(&index, &posts);
    PORTABLY.set(true);
    let portable = decisions(&index, &posts);
    assert!(vectors.len() > 100);
    assert_eq!(vectors, portable);
}

/// Each process uses random hash keys.
#[test]
fn two_processes_decide_equally() {
    let said = [(); 2].map(|()| {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["index::tests::decisions_of_one_process", "--exact"])
            .args(["--ignored", "--nocapture"])
            .output()
            .unwrap();
        let output = String::from_utf8(output.stdout).unwrap();
        let from = output.find("decided:").unwrap();
        let line = output[from..].lines().next().unwrap();
        line.to_owned()
    });
    let (index, posts) = sample();
    let here = format!("decided:{:?}", decisions(&index, &posts));
    assert!(here.len() > 10_000 && said[0] == here && said[1] == here);
}

#[test]
#[ignore = "another test runs it, in separate processes"]
fn decisions_of_one_process() {
    let (index, posts) = sample();
    println!("\ndecided:{:?}", decisions(&index, &posts));
}

#[test]
fn hostile_posts_are_decided_quickly() {
    let phrase = |word: &str, times: usize| vec![word; times].join(" ");
    let instructions: Instructions = serde_json::from_value(json!({
        "feeds": [FEEDS[0]], "focus": "SALES", "threshold": 0.9,
        "include": [{"text": phrase("a", 40), "weight": 1.0}, {"text": "a-a-a-a", "weight": 1.0},
            {"text": "Yahoo! a", "weight": 1.0}, {"text": phrase("a b", 20), "weight": 1.0}],
        "exclude": [phrase("a", 39)],
        "names": [{"text": phrase("a", 38), "kind": "OWN"}],
    }))
    .unwrap();
    let plan = Arc::new(Plan::compile(&instructions).unwrap());
    let index = Index::build((0..200).map(|n| (name(n), Arc::clone(&plan))), numbered(1));
    for unit in [
        "a ",
        "a b ",
        "a-",
        "a.b@",
        "A's ",
        "a\u{301} ",
        "한",
        "a. ",
        "a & a",
    ] {
        let text = unit.repeat(400_000 / unit.len());
        let post = PostText::new(Some(&text), Some(&text));
        // What takes quadratic time does not end within the runner's limit of minutes.
        let found = index.matches(&post, &FEEDS[0].parse().unwrap());
        assert!(found.len() <= 200, "{unit:?} {}", found.len());
    }
}

/// Each search stays within its own limit, but the plan has hundreds of them.
#[test]
fn searches_of_a_plan_share_a_budget_and_lose_no_term() {
    let names = 1..100_u64;
    let plan = |last: u64| -> Arc<Plan> {
        let begin = |n: usize| format!("{}{}", "a ".repeat(n % 30 + 2), "b ".repeat(n / 30));
        let include: Vec<Value> = (0..500)
            .map(|n| json!({"text": begin(n), "weight": 1}))
            .chain([json!({"text": format!("zebra{last}"), "weight": 100})])
            .collect();
        let instructions: Instructions = serde_json::from_value(
            json!({"feeds": [FEEDS[0]], "include": include, "threshold": 100,
                   "require": [[format!("zebra{last}")]]}),
        )
        .unwrap();
        Arc::new(Plan::compile(&instructions).unwrap())
    };
    let index = Index::build(names.clone().map(|n| (name(n), plan(n))), numbered(1));
    let text = format!(
        "{}{}",
        "a ".repeat(10_000),
        "a a b b b b b b b b b b b b ".repeat(500)
    );
    let zebras: String = names.clone().map(|n| format!("zebra{n} ")).collect();
    let post = PostText::new(Some(&zebras), Some(&text));
    let feed: FeedName = FEEDS[0].parse().unwrap();
    let mut found = Vec::new();
    let (spent, taken) = steps::within(u32::MAX, || {
        index.search(&post, &feed, |name, _, _| found.push(name))
    });
    assert_eq!(found.len(), names.count(), "no match is lost");
    assert_eq!(spent, found.len());
    assert_eq!(taken, 99 * steps::OF_PLAN);
    let (_, taken) = steps::within(u32::MAX, || evaluate(&plan(1), &post, None));
    // The verdict and its explanation.
    assert!(taken <= 2 * steps::OF_PLAN, "{taken} steps");
}
