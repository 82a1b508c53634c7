//! Paging repeats and skips nothing, in any order, while rows are added.

use std::collections::BTreeSet;

use domain::{
    Timestamp,
    field::{Field, Kind},
    list::{CONNECTION_FIELDS, MANAGER_FIELDS, NAMESPACE_FIELDS, SCAN_FIELDS},
    namespace::CreateNamespace,
};
use serde::Serialize;
use serde_json::Value;
use store::{Page, connections, managers, namespaces, scans};
use test_support::{instructions, post};

use crate::support::{feed, list_query, matched, new_scan, record, run, start, walk};

/// Every field alone, in both directions, and some fields with ties that further fields break.
fn orders(fields: &[Field]) -> Vec<String> {
    let mut orders = vec![String::new()];
    // Lists of texts cannot be ordered by.
    let fields: Vec<Field> = fields
        .iter()
        .filter(|field| field.kind != Kind::Texts)
        .copied()
        .collect();
    for field in &fields {
        orders.push(field.name.to_owned());
        orders.push(format!("{} desc", field.name));
    }
    for pair in fields.windows(2) {
        orders.push(format!("{} desc, {}", pair[1].name, pair[0].name));
        orders.push(format!("{}, {} desc", pair[1].name, pair[0].name));
    }
    orders
}

fn name(item: &impl Serialize) -> String {
    serde_json::to_value(item).unwrap()["name"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Walks a list and compares it with the rows at the start; returns those of them that it saw.
async fn whole<T: Serialize>(
    before: &BTreeSet<String>,
    order: &str,
    page: impl AsyncFnMut(Option<&str>) -> Page<T>,
) -> Vec<Value> {
    let items = walk(page).await;
    let names: Vec<String> = items.iter().map(name).collect();
    let distinct: BTreeSet<String> = names.iter().cloned().collect();
    assert_eq!(distinct.len(), names.len(), "repeated by `{order}`");
    assert!(before.is_subset(&distinct), "skipped by `{order}`");
    items
        .iter()
        .map(|item| serde_json::to_value(item).unwrap())
        .collect()
}

/// Asserts that text, times, booleans and words are in `order`; a missing value counts as empty.
fn assert_sorted(items: &[Value], order: &str) {
    let (path, descending) = match order.split(", ").next().unwrap().split_once(' ') {
        Some((path, _)) => (path, true),
        None => (order.split(", ").next().unwrap(), false),
    };
    let key = |item: &Value| -> String {
        let found = path
            .split('.')
            .try_fold(item, |value, part| value.get(part));
        match found {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        }
    };
    let keys: Vec<String> = items.iter().map(key).collect();
    let sorted = keys.is_sorted_by(|a, b| if descending { a >= b } else { a <= b });
    assert!(sorted, "`{order}` gave {keys:?}");
}

#[tokio::test]
async fn namespaces() {
    let mut at = start().await;
    let account = at.fixture.account;
    let mut add = 0;
    for order in orders(NAMESPACE_FIELDS) {
        let all = list_query(NAMESPACE_FIELDS, 100, None, "", "");
        let page = namespaces::list(&mut at.conn, account, None, &all)
            .await
            .unwrap();
        let before = page.items.iter().map(name).collect();
        let items = whole(&before, &order, async |token| {
            let draft = CreateNamespace {
                nickname: ["b", "ä", "B", "a"][add % 4].to_owned(),
                mutes: Vec::new(),
            };
            namespaces::insert(&mut at.conn, account, &draft, &test_support::QUOTAS)
                .await
                .unwrap();
            add += 1;
            let list = list_query(NAMESPACE_FIELDS, 7, token, "", &order);
            namespaces::list(&mut at.conn, account, None, &list)
                .await
                .unwrap()
        })
        .await;
        assert_sorted(
            &items,
            if order.is_empty() {
                "createTime desc"
            } else {
                &order
            },
        );
        // Ties in the time too.
        run(&mut at.conn, "UPDATE namespaces SET create_time = date_trunc('minute', create_time) WHERE nickname = 'a'").await;
    }
}

#[tokio::test]
async fn connections() {
    let mut at = start().await;
    let namespace = at.fixture.namespace;
    let orders = orders(CONNECTION_FIELDS);
    for (at_order, order) in orders.into_iter().enumerate() {
        let mut before = BTreeSet::new();
        if at_order % 4 == 0 {
            let url = format!("https://{}.example/", at_order % 3);
            let made = at.fixture.connection(&mut at.conn, &url).await;
            connections::disable(&mut at.conn, made, "gone", Timestamp::now())
                .await
                .unwrap();
            before.insert(made.to_string());
        }
        let items = whole(&before, &order, async |token| {
            at.fixture
                .connection(&mut at.conn, "https://a.example/")
                .await;
            let list = list_query(CONNECTION_FIELDS, 9, token, "", &order);
            connections::list(&mut at.conn, &at.fixture.sealer, namespace, &list)
                .await
                .unwrap()
        })
        .await;
        assert_sorted(
            &items,
            if order.is_empty() {
                "createTime desc"
            } else {
                &order
            },
        );
    }
}

#[tokio::test]
async fn managers() {
    let mut at = start().await;
    let namespace = at.fixture.namespace;
    let hook = at
        .fixture
        .connection(&mut at.conn, "https://a.example/")
        .await;
    for n in 0..12 {
        let notices: &[_] = if n % 2 == 0 { &[hook] } else { &[] };
        match n % 3 {
            0 => {
                at.fixture
                    .manager(&mut at.conn, &instructions("a"), notices)
                    .await
            }
            _ => {
                at.fixture
                    .applied_manager(&mut at.conn, &instructions("a"), notices)
                    .await
            }
        };
    }
    run(&mut at.conn, "UPDATE managers SET enable = false, nickname = 'X', source = 'NETWORK' WHERE get_byte(uuid_send(id), 15) < 128").await;
    for order in orders(MANAGER_FIELDS) {
        let all = list_query(MANAGER_FIELDS, 100, None, "", "");
        let page = managers::list(&mut at.conn, namespace, &all).await.unwrap();
        let before = page.items.iter().map(name).collect();
        let mut first = true;
        let items = whole(&before, &order, async |token| {
            if std::mem::take(&mut first) {
                at.fixture
                    .manager(&mut at.conn, &instructions("a"), &[])
                    .await;
            }
            let list = list_query(MANAGER_FIELDS, 5, token, "", &order);
            managers::list(&mut at.conn, namespace, &list)
                .await
                .unwrap()
        })
        .await;
        assert_sorted(
            &items,
            if order.is_empty() {
                "createTime desc"
            } else {
                &order
            },
        );
    }
    let all = list_query(MANAGER_FIELDS, 100, None, "", "createTime");
    let page = managers::list(&mut at.conn, namespace, &all).await.unwrap();
    for manager in page.items {
        let single = managers::get(&mut at.conn, manager.name).await.unwrap();
        assert_eq!(single, Some(manager), "a list and a get tell the same");
    }
}

#[tokio::test]
async fn scans() {
    let mut at = start().await;
    let manager = at
        .fixture
        .manager(&mut at.conn, &instructions("a"), &[])
        .await;
    let mut count = 0;
    let mut some = |n: usize| {
        count += 1;
        let mut one = post(&format!("forum:{count}"), ["b", "B", "ä", "a"][n % 4]);
        one.time = "2026-11-01T00:00:00Z".parse::<Timestamp>().unwrap();
        if n.is_multiple_of(3) {
            (one.title, one.subforum) = (None, None);
        }
        if n.is_multiple_of(5) {
            // Longer than a page token may be.
            one.text = Some("é".repeat(20_000));
        }
        one
    };
    let posts: Vec<_> = (0..24).map(&mut some).collect();
    let matches: Vec<_> = posts
        .iter()
        .zip(0_u8..)
        .map(|(post, n)| {
            let mut one = new_scan(manager, post);
            one.matched = matched(f64::from(n % 5) / 10.0 + 0.1);
            one
        })
        .collect();
    scans::record(&mut at.conn, &feed(), &matches, Timestamp::now())
        .await
        .unwrap();
    for order in orders(SCAN_FIELDS) {
        let all = list_query(SCAN_FIELDS, 100, None, "", "");
        let page = scans::list(&mut at.conn, manager, &all).await.unwrap();
        let before = page.items.iter().map(name).collect();
        let mut round = 0;
        let items = whole(&before, &order, async |token| {
            if round < 2 {
                record(&mut at.conn, manager, &[some(round)]).await;
            }
            round += 1;
            let list = list_query(SCAN_FIELDS, 11, token, "", &order);
            scans::list(&mut at.conn, manager, &list).await.unwrap()
        })
        .await;
        assert_sorted(
            &items,
            if order.is_empty() {
                "createTime desc"
            } else {
                &order
            },
        );
        run(
            &mut at.conn,
            "DELETE FROM scans WHERE id NOT IN (SELECT id FROM scans ORDER BY id LIMIT 30)",
        )
        .await;
    }
}
