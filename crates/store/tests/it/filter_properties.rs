//! PostgreSQL and an evaluator in memory keep the same items, for any filter.
//!
//! The evaluator reads the JSON that clients see, by the rules of the API's description: missing text is empty, a
//! missing time or number compares with nothing, text is ordered by code points, and `:` finds text in any case.

use std::cell::RefCell;

use domain::{
    Timestamp,
    field::{self, Field, Kind, Literal, Op},
    filter::{Clause, Comparison, Filter},
    list::{MANAGER_FIELDS, SCAN_FIELDS},
};
use proptest::{
    prelude::*,
    sample,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};
use serde_json::Value;
use store::{managers, scans};
use test_support::{instructions, post};

use crate::support::{feed, list_query, matched, new_scan, run, start};

/// Letters with unusual case folding, characters with a special meaning in LIKE, regular expressions and SQL, and
/// plain ones.
const LETTERS: &[&str] = &[
    "a", "A", "b", "ß", "ẞ", "SS", "σ", "ς", "Σ", "i", "I", "İ", "ı", "K", "k", "Å", "å", "é", "É",
    "ǆ", "ǅ", "Ǆ", "ﬁ", "ﬃ", "ŉ", "ꭰ", "Ꭰ", "ა", "Ა", "𐐀", "𐐨", "%", "_", "\\", "\"", "'", "$1",
    "*", " ", "\u{307}", "\u{301}", "日", "😀", ".",
];
const NUMBERS: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    0.1,
    0.30000000000000004,
    0.5,
    -1.5,
    5e-324,
    1e-300,
    1e300,
    f64::MAX,
    f64::MIN,
    9007199254740993.0,
    f64::EPSILON,
];
/// Stored values of the items, which are compared.
const SCORES: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    0.1,
    0.30000000000000004,
    0.5,
    -1.5,
    0.123456789,
    123456.987654321,
    5e-324,
    1e-300,
    1e300,
    f64::MAX,
    f64::MIN,
    9007199254740993.0,
    f64::EPSILON,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];
const MOMENT: i64 = 1_700_000_000_000_000;

fn folded(text: &str) -> String {
    text.to_lowercase().to_uppercase()
}

fn holds(item: &Value, one: &Comparison, fields: &[Field]) -> bool {
    let field = fields.iter().find(|field| field.name == one.field).unwrap();
    let value = field::value_of(item, field);
    let found = match (&one.literal, value) {
        (Literal::Text(literal), value) => {
            let text = match value {
                Some(Literal::Text(text)) => text,
                _ => String::new(),
            };
            match one.op {
                Op::Has => folded(&text).contains(&folded(literal)),
                op => compare(op, text.as_str(), literal.as_str()),
            }
        }
        (Literal::Time(literal), Some(Literal::Time(time))) => compare(one.op, time, *literal),
        (Literal::Bool(literal), Some(Literal::Bool(flag))) => compare(one.op, flag, *literal),
        (Literal::Number(literal), Some(Literal::Number(number))) => {
            compare(one.op, number, *literal)
        }
        (_, None) => false,
        (literal, Some(value)) => panic!("{literal:?} is compared with {value:?}"),
    };
    found != one.negated
}

fn compare<T: PartialOrd>(op: Op, left: T, right: T) -> bool {
    match op {
        Op::Equal => left == right,
        Op::NotEqual => left != right,
        Op::Less => left < right,
        Op::LessOrEqual => left <= right,
        Op::Greater => left > right,
        Op::GreaterOrEqual => left >= right,
        Op::Has => unreachable!("only text has"),
    }
}

fn kept(items: &[Value], filter: &Filter, fields: &[Field]) -> Vec<String> {
    let keeps = |item: &&Value| {
        let clause = |clause: &Clause| clause.0.iter().any(|one| holds(item, one, fields));
        filter.0.iter().all(clause)
    };
    items.iter().filter(keeps).map(name).collect()
}

fn name(item: &Value) -> String {
    item["name"].as_str().unwrap().to_owned()
}

fn words() -> impl Strategy<Value = String> {
    prop::collection::vec(sample::select(LETTERS), 0..4).prop_map(|letters| letters.concat())
}

/// A literal for `field`, often the value of an item, or a part of it in another case.
fn literal(field: Field, items: &[Value]) -> BoxedStrategy<Literal> {
    let known: Vec<Literal> = items
        .iter()
        .filter_map(|item| field::value_of(item, &field))
        .collect();
    let other = match field.kind {
        Kind::Word(words) => sample::select(words)
            .prop_map(|word| Literal::Text(word.to_owned()))
            .boxed(),
        Kind::Time => (MOMENT - 20..MOMENT + 20)
            .prop_map(|micros| Literal::Time(Timestamp::from_micros(micros).unwrap()))
            .boxed(),
        Kind::Bool => any::<bool>().prop_map(Literal::Bool).boxed(),
        Kind::Number => sample::select(NUMBERS).prop_map(Literal::Number).boxed(),
        _ => words().prop_map(Literal::Text).boxed(),
    };
    if known.is_empty() || matches!(field.kind, Kind::Word(_)) {
        return other;
    }
    let piece = (sample::select(known), 0..6_usize, 0..12_usize, 0..3_u8);
    let piece = piece.prop_map(|(literal, skip, take, case)| match literal {
        Literal::Text(text) if case > 0 => {
            let piece: String = text.chars().skip(skip).take(take).collect();
            Literal::Text(if case == 1 {
                piece.to_uppercase()
            } else {
                piece.to_lowercase()
            })
        }
        other => other,
    });
    prop_oneof![2 => piece, 1 => other].boxed()
}

fn filters(fields: &'static [Field], items: Vec<Value>) -> impl Strategy<Value = Filter> {
    const OPS: [Op; 7] = [
        Op::Equal,
        Op::NotEqual,
        Op::Less,
        Op::LessOrEqual,
        Op::Greater,
        Op::GreaterOrEqual,
        Op::Has,
    ];
    // Lists of texts have separate rules.
    let scalars: Vec<Field> = fields
        .iter()
        .filter(|field| field.kind != Kind::Texts)
        .copied()
        .collect();
    let comparison =
        (sample::select(scalars), any::<bool>()).prop_flat_map(move |(field, negated)| {
            let ops: Vec<Op> = OPS.into_iter().filter(|op| field.kind.takes(*op)).collect();
            (sample::select(ops), literal(field, &items)).prop_map(move |(op, literal)| {
                Comparison {
                    negated,
                    field: field.name,
                    op,
                    literal,
                }
            })
        });
    let clause = prop::collection::vec(comparison, 1..4).prop_map(Clause);
    prop::collection::vec(clause, 1..4).prop_map(Filter)
}

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    })
}

#[test]
fn a_filter_keeps_the_same_scans_in_sql_and_in_rust() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (mut at, manager) = runtime.block_on(async {
        let mut at = start().await;
        let manager = at
            .fixture
            .manager(&mut at.conn, &instructions("a"), &[])
            .await;
        (at, manager)
    });
    // The items are random too, generated once.
    let mut some = TestRunner::deterministic();
    let mut text = |at: usize| {
        let tree = words().new_tree(&mut some).unwrap();
        (!at.is_multiple_of(5)).then(|| tree.current())
    };
    let posts: Vec<_> = (0..60_usize)
        .map(|n| {
            let mut one = post(&format!("forum:{n}"), "");
            one.title = text(n);
            one.text = text(n + 1);
            one.user.name = text(n | 1).unwrap_or_default();
            one.time = Timestamp::from_micros(MOMENT + i64::try_from(n % 7).unwrap()).unwrap();
            if n % 4 == 0 {
                one.subforum = None;
            }
            one
        })
        .collect();
    let matches: Vec<_> = posts
        .iter()
        .enumerate()
        .map(|(n, post)| {
            let mut one = new_scan(manager, post);
            one.matched = matched(SCORES[n % SCORES.len()]);
            one
        })
        .collect();
    let items: Vec<Value> = runtime.block_on(async {
        scans::record(&mut at.conn, &feed(), &matches, Timestamp::now())
            .await
            .unwrap();
        run(
            &mut at.conn,
            "UPDATE scans SET value = false WHERE get_byte(uuid_send(id), 15) < 128",
        )
        .await;
        let all = list_query(SCAN_FIELDS, 100, None, "", "createTime");
        let page = scans::list(&mut at.conn, manager, &all).await.unwrap();
        page.items
            .iter()
            .map(|scan| serde_json::to_value(scan).unwrap())
            .collect()
    });
    assert_eq!(items.len(), 60);
    let conn = RefCell::new(at.conn);
    let outcome = runner(400).run(&filters(SCAN_FIELDS, items.clone()), |filter| {
        let text = filter.to_string();
        prop_assume!(text.len() <= 2_048);
        let list = list_query(SCAN_FIELDS, 100, None, &text, "createTime");
        let page = runtime.block_on(scans::list(&mut conn.borrow_mut(), manager, &list));
        let page = page.map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
        let found: Vec<String> = page
            .items
            .iter()
            .map(|scan| scan.name.to_string())
            .collect();
        prop_assert_eq!(found, kept(&items, &filter, SCAN_FIELDS), "{}", text);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_filter_keeps_the_same_managers_in_sql_and_in_rust() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut at = runtime.block_on(start());
    let namespace = at.fixture.namespace;
    let items: Vec<Value> = runtime.block_on(async {
        for n in 0..16 {
            let mut told = instructions("a");
            if n % 3 == 0 {
                told.threshold = Some(NUMBERS[n % 8].abs());
                told.brief = LETTERS[n].repeat(2);
            }
            if n % 2 == 0 {
                at.fixture.manager(&mut at.conn, &told, &[]).await;
            } else {
                at.fixture.applied_manager(&mut at.conn, &told, &[]).await;
            }
        }
        run(&mut at.conn, "UPDATE managers SET nickname = 'Σας', enable = false WHERE get_byte(uuid_send(id), 15) < 128").await;
        let all = list_query(MANAGER_FIELDS, 100, None, "", "createTime");
        let page = managers::list(&mut at.conn, namespace, &all).await.unwrap();
        page.items.iter().map(|one| serde_json::to_value(one).unwrap()).collect()
    });
    let conn = RefCell::new(at.conn);
    let outcome = runner(200).run(&filters(MANAGER_FIELDS, items.clone()), |filter| {
        let text = filter.to_string();
        prop_assume!(text.len() <= 2_048);
        let list = list_query(MANAGER_FIELDS, 100, None, &text, "createTime");
        let page = runtime.block_on(managers::list(&mut conn.borrow_mut(), namespace, &list));
        let page = page.map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
        let found: Vec<String> = page.items.iter().map(|one| one.name.to_string()).collect();
        prop_assert_eq!(found, kept(&items, &filter, MANAGER_FIELDS), "{}", text);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}
