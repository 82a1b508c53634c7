use std::collections::BTreeSet;

use domain::{
    Timestamp,
    manager::{ApplyError, ApplyErrorCode},
};
use serde_json::{Value, json};

use crate::{
    app::TestApp,
    client::{Client, connection_body, manager_body, manual_body},
};

/// Creates 25 Connections in a new Namespace, with repeated nicknames and addresses. Returns the list's path.
async fn twenty_five(client: &Client) -> String {
    let namespace = client.namespace().await;
    let path = format!("/v1/{namespace}/connections");
    for n in 0..25 {
        client.made(&path, &numbered(n)).await;
    }
    path
}

fn numbered(n: usize) -> Value {
    let mut body = connection_body();
    body["nickname"] = json!(format!("hook {}", n % 4));
    body["maxPerSecond"] = json!(1 + n % 3);
    body["method"] = json!(["POST", "PUT", "PATCH"][n % 3]);
    body
}

fn names(page: &Value) -> Vec<String> {
    let items = page["connections"].as_array().unwrap();
    items
        .iter()
        .map(|item| item["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Reads all pages; `between` runs before each page but the first.
async fn walk(
    client: &Client,
    path: &str,
    order: &str,
    size: &str,
    mut between: impl AsyncFnMut(),
) -> Vec<String> {
    let mut all = Vec::new();
    let mut token = String::new();
    loop {
        let query = [
            ("pageSize", size),
            ("orderBy", order),
            ("pageToken", token.as_str()),
        ];
        let page = client.get_with(path, &query).await;
        assert_eq!(page.status, 200, "{order}: {}", page.body);
        let found = names(&page.body);
        assert!(found.len() <= size.parse::<usize>().unwrap());
        all.extend(found);
        match page.body["nextPageToken"].as_str() {
            Some(next) => token = next.to_owned(),
            None => return all,
        }
        between().await;
    }
}

#[tokio::test]
async fn paging_in_every_order_returns_each_item_once() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let path = twenty_five(&acme).await;
    let whole = acme.get_with(&path, &[("pageSize", "100")]).await;
    let everything: BTreeSet<String> = names(&whole.body).into_iter().collect();
    assert_eq!(everything.len(), 25);
    for order in [
        "",
        "createTime",
        "createTime desc",
        "name",
        "name desc",
        "updateTime asc",
        "nickname",
        "nickname desc, maxPerSecond",
        "maxPerSecond asc, method desc, createTime",
        "type, state desc, nickname",
        "method desc, name desc",
    ] {
        let at_once = acme
            .get_with(&path, &[("pageSize", "100"), ("orderBy", order)])
            .await;
        let paged = walk(&acme, &path, order, "7", async || {}).await;
        assert_eq!(paged, names(&at_once.body), "{order}");
        let found: BTreeSet<String> = paged.iter().cloned().collect();
        assert_eq!((paged.len(), &found), (25, &everything), "{order}");
    }
}

#[tokio::test]
async fn concurrent_inserts_neither_skip_nor_repeat_items() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let path = twenty_five(&acme).await;
    for order in [
        "createTime desc",
        "createTime",
        "nickname",
        "maxPerSecond desc, nickname",
    ] {
        let whole = acme
            .get_with(&path, &[("pageSize", "100"), ("orderBy", order)])
            .await;
        let before = names(&whole.body);
        let mut n = 0;
        let paged = walk(&acme, &path, order, "10", async || {
            n += 1;
            acme.made(&path, &numbered(n)).await;
        })
        .await;
        let old: Vec<String> = paged
            .iter()
            .filter(|name| before.contains(name))
            .cloned()
            .collect();
        assert_eq!(old, before, "{order}");
        let distinct: BTreeSet<&String> = paged.iter().collect();
        assert_eq!(distinct.len(), paged.len(), "{order}");
    }
}

#[tokio::test]
async fn default_order_is_newest_first() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let path = twenty_five(&acme).await;
    let page = acme.get(&path).await;
    let times: Vec<&str> = page.body["connections"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["createTime"].as_str().unwrap())
        .collect();
    assert_eq!(times.len(), 5);
    assert!(times.is_sorted_by(|a, b| a > b));
    for (size, count) in [("0", 5), ("", 5), ("1", 1), ("25", 25), ("1000", 25)] {
        let page = acme.get_with(&path, &[("pageSize", size)]).await;
        assert_eq!(names(&page.body).len(), count, "{size}");
    }
}

#[tokio::test]
async fn filters_return_exactly_the_matching_items() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let path = twenty_five(&acme).await;
    let newest = acme.get(&path).await.body["connections"][0]["createTime"].clone();
    let newest = newest.as_str().unwrap();
    for (filter, count) in [
        (String::new(), 25),
        (r#"nickname = "hook 1""#.to_owned(), 6),
        (r#"nickname != "hook 1""#.to_owned(), 19),
        (r#"NOT nickname = "hook 1""#.to_owned(), 19),
        (r#"nickname : "HOOK""#.to_owned(), 25),
        (r#"method = PUT OR method = "PATCH""#.to_owned(), 16),
        (
            r#"method = PUT AND nickname = "hook 1" OR nickname = "hook 2""#.to_owned(),
            4,
        ),
        (format!(r#"createTime < "{newest}""#), 24),
        (format!(r#"createTime >= "{newest}""#), 1),
        (format!(r#"createTime > "{newest}""#), 0),
        (r#"createTime > "1970-01-01T01:00:00+01:00""#.to_owned(), 25),
        (r#"nickname = "\" OR \"\"='""#.to_owned(), 0),
        (r#"state = DISABLED"#.to_owned(), 0),
    ] {
        let query = [("filter", filter.as_str()), ("pageSize", "100")];
        let page = acme.get_with(&path, &query).await;
        assert_eq!(page.status, 200, "{filter}: {}", page.body);
        assert_eq!(names(&page.body).len(), count, "{filter}");
    }
}

#[tokio::test]
async fn managers_are_filtered_and_ordered_by_sensitivity() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let path = format!("/v1/{namespace}/managers");
    let old = acme.manager(&namespace).await;
    // A row from before the release that added the field.
    app.database
        .run("UPDATE managers SET input = input - 'sensitivity'")
        .await;
    let mut body = manager_body();
    body["input"]["sensitivity"] = json!("PRECISE");
    let precise = acme.made(&path, &body).await;
    let manual = manual_body(&json!({"exclude": ["x"]}));
    let manual = acme.made(&path, &manual).await;
    let read = acme.get(&format!("/v1/{old}")).await;
    assert_eq!(read.body["input"]["sensitivity"], "BALANCED");

    for (filter, order, expected) in [
        ("input.sensitivity = PRECISE", "", vec![&precise]),
        ("input.sensitivity = BALANCED", "", vec![&old]),
        ("input.sensitivity = BROAD", "", vec![]),
        (
            "input.sensitivity != PRECISE",
            "createTime",
            vec![&old, &manual],
        ),
        ("", "input.sensitivity desc", vec![&precise, &old, &manual]),
    ] {
        let query = [("filter", filter), ("orderBy", order)];
        let page = acme.get_with(&path, &query).await;
        assert_eq!(page.status, 200, "{filter}: {}", page.body);
        let found = page.names("managers");
        assert_eq!(found, expected, "{filter} {order}");
    }
    let query = [("filter", "input.sensitivity = precise")];
    let refused = acme.get_with(&path, &query).await;
    assert_eq!(refused.details(), [("filter", "invalid_enum")]);
}

#[tokio::test]
async fn lists_can_be_filtered_by_problem() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let (failed, fine) = (
        acme.manager(&namespace).await,
        acme.manager(&namespace).await,
    );
    let manual = manual_body(&json!({"exclude": ["x"]}));
    let path = format!("/v1/{namespace}/managers");
    let manual = acme.made(&path, &manual).await;
    let stopped = acme.connection(&namespace).await;
    acme.connection(&namespace).await;
    let mut conn = app.database.connect().await;
    store::managers::fail(
        &mut conn,
        failed.parse().unwrap(),
        1,
        &ApplyError {
            code: ApplyErrorCode::NoUsableContent,
            message: "no page has words".to_owned(),
        },
        Timestamp::now(),
    )
    .await
    .unwrap();
    store::connections::disable(
        &mut conn,
        stopped.parse().unwrap(),
        "410 gone",
        Timestamp::now(),
    )
    .await
    .unwrap();

    let everything = [&failed, &fine, &manual];
    for (filter, kept) in [
        ("applyError.code = no_usable_content", &everything[..1]),
        ("applyError.code != no_usable_content", &everything[1..]),
        (r#"applyError.message : "PAGE""#, &everything[..1]),
        (r#"applyError.message = """#, &everything[1..]),
        ("input.type = STRUCTURED", &everything[..2]),
        ("input.focus.type = SALES", &everything[..2]),
        ("NOT input.focus.type = SALES", &everything[2..]),
        ("input.focus.type = CRISIS", &[]),
    ] {
        let query = [("filter", filter), ("orderBy", "createTime")];
        let page = acme.get_with(&path, &query).await;
        assert_eq!(page.status, 200, "{filter}: {}", page.body);
        let found = page.names("managers");
        assert_eq!(found, kept, "{filter}");
    }
    let query = [("filter", "applyError.code = bad_luck")];
    let refused = acme.get_with(&path, &query).await;
    assert_eq!(refused.details(), [("filter", "invalid_enum")]);
    // Each page token contains a value, or its absence.
    for order in [
        "applyError.message",
        "input.focus.type desc, applyError.code",
    ] {
        let mut token = String::new();
        let mut found = BTreeSet::new();
        for _ in 0..3 {
            let query = [("orderBy", order), ("pageSize", "1"), ("pageToken", &token)];
            let page = acme.get_with(&path, &query).await;
            found.insert(page.body["managers"][0]["name"].to_string());
            token = page.body["nextPageToken"].as_str().unwrap_or("").to_owned();
        }
        assert_eq!((found.len(), token.as_str()), (3, ""), "{order}");
    }

    let path = format!("/v1/{namespace}/connections");
    for (filter, count) in [(r#"stateReason : "GONE""#, 1), (r#"stateReason = """#, 1)] {
        let page = acme.get_with(&path, &[("filter", filter)]).await;
        assert_eq!(names(&page.body).len(), count, "{filter}");
    }
}

/// Compares the serialised text, because parsed JSON does not keep the order of keys.
#[tokio::test]
async fn list_items_are_serialised_like_single_resources() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let connection = acme.connection(&namespace).await;
    let manager = acme.manager(&namespace).await;
    for (list, name) in [
        ("/v1/namespaces".to_owned(), &namespace),
        (format!("/v1/{namespace}/connections"), &connection),
        (format!("/v1/{namespace}/managers"), &manager),
    ] {
        let key = list.rsplit('/').next().unwrap();
        let single = acme.text(&format!("/v1/{name}")).await;
        assert!(single.starts_with(r#"{"name":"#), "{single}");
        let expected = format!(r#"{{"{key}":[{single}]}}"#);
        assert_eq!(acme.text(&list).await, expected);
    }
}

#[tokio::test]
async fn page_size_is_at_most_one_hundred() {
    let app = TestApp::start_with(|config| config.quotas.namespaces = 101).await;
    let acme = app.account("acme").await;
    for n in 0..101 {
        acme.made("/v1/namespaces", &json!({"nickname": format!("n{n}")}))
            .await;
    }
    for size in ["100", "101", "1000000"] {
        let page = acme.get_with("/v1/namespaces", &[("pageSize", size)]).await;
        assert_eq!(page.nicknames("namespaces").len(), 100, "{size}");
        assert!(page.body["nextPageToken"].is_string(), "{size}");
    }
}

#[tokio::test]
async fn invalid_list_parameters_are_named() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let path = format!("/v1/{namespace}/connections");
    let long = "x".repeat(2_049);
    let many = vec!["method = PUT"; 51].join(" AND ");
    for (name, value, issue) in [
        ("pageSize", "-1", "out_of_range"),
        ("pageSize", "ten", "invalid_format"),
        ("pageSize", "1.5", "invalid_format"),
        ("pageToken", "nonsense", "invalid_format"),
        ("pageToken", "%%%", "invalid_format"),
        ("orderBy", "colour", "unknown_field"),
        ("orderBy", "createTime sideways", "invalid_format"),
        ("orderBy", "createTime,", "invalid_format"),
        ("orderBy", "nickname, nickname desc", "duplicate"),
        ("orderBy", &long, "too_long"),
        ("filter", "colour = 1", "unknown_field"),
        ("filter", "nickname =", "invalid_format"),
        ("filter", "method = DELETE", "invalid_enum"),
        ("filter", r#"createTime > "yesterday""#, "invalid_format"),
        ("filter", "nickname = \"nul\0\"", "invalid_format"),
        ("filter", &many, "too_many"),
        ("filter", &long, "too_long"),
        ("colour", "red", "unknown_field"),
    ] {
        let answer = acme.get_with(&path, &[(name, value)]).await;
        assert_eq!(answer.status, 400, "{name}={value}");
        assert_eq!(answer.details(), [(name, issue)], "{name}={value}");
    }
    let answer = acme
        .get(&format!("{path}?pageSize=1&pageSize=2&filter=%ff&%zz=1"))
        .await;
    let expected = [
        ("pageSize", "duplicate"),
        ("filter", "invalid_format"),
        ("query", "invalid_format"),
    ];
    assert_eq!(answer.details(), expected);
    let answer = acme
        .get_with(&path, &[("filter", r#"method = PUT AND state"#)])
        .await;
    let message = answer.body["message"].as_str().unwrap();
    assert!(message.contains("column 23"), "{message}");
    // Operations without parameters refuse all.
    let answer = acme.get(&format!("/v1/{namespace}?pageSize=1")).await;
    assert_eq!(answer.details(), [("pageSize", "unknown_field")]);
}

#[tokio::test]
async fn page_token_of_another_list_is_refused() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let path = twenty_five(&acme).await;
    let other = twenty_five(&acme).await;
    let page = acme.get_with(&path, &[("orderBy", "nickname")]).await;
    let token = page.body["nextPageToken"].as_str().unwrap();

    let fine = [
        ("orderBy", "nickname"),
        ("pageToken", token),
        ("pageSize", "50"),
    ];
    assert_eq!(acme.get_with(&path, &fine).await.status, 200);
    let managers = path.replace("connections", "managers");
    let damaged = format!("{}A", &token[..token.len() - 1]);
    for (path, query) in [
        (&path, vec![("pageToken", token)]),
        (
            &path,
            vec![("pageToken", token), ("orderBy", "nickname desc")],
        ),
        (
            &path,
            vec![("orderBy", "nickname"), ("pageToken", damaged.as_str())],
        ),
        (
            &path,
            vec![
                ("orderBy", "nickname"),
                ("pageToken", token),
                ("filter", "method = PUT"),
            ],
        ),
        (&other, vec![("orderBy", "nickname"), ("pageToken", token)]),
        (
            &managers,
            vec![("orderBy", "nickname"), ("pageToken", token)],
        ),
    ] {
        let answer = acme.get_with(path, &query).await;
        assert_eq!(answer.status, 400, "{path} {query:?}");
        assert_eq!(answer.details(), [("pageToken", "invalid_format")]);
        let message = "invalid request: pageToken: not a token of this list";
        assert_eq!(answer.body["message"], message);
    }
}

/// Anyone who knows the format can forge a token; it must do no harm.
#[tokio::test]
async fn forged_page_token_is_harmless() {
    use domain::{Id, field::Literal, page::PageToken};

    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let path = format!("/v1/{namespace}/connections");
    for (order, value, status) in [
        ("nickname", Literal::Text("nul\0".to_owned()), 400),
        (
            "nickname",
            Literal::Text("'; DROP TABLE connections".to_owned()),
            200,
        ),
        (
            "createTime",
            Literal::Time(domain::Timestamp::from_micros(-8_000_000_000_000_000_000).unwrap()),
            400,
        ),
    ] {
        let token = PageToken {
            values: vec![Some(value)],
            id: Id::generate(),
        };
        let binding = format!("{namespace}/connections\n\n{order}");
        let token = token.encode(&binding);
        let query = [("orderBy", order), ("pageToken", token.as_str())];
        assert_eq!(acme.get_with(&path, &query).await.status, status, "{order}");
    }
}

#[tokio::test]
async fn nicknames_are_sorted() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    for nickname in ["b", "a", "C", "ä"] {
        acme.made("/v1/namespaces", &json!({"nickname": nickname}))
            .await;
    }
    let page = acme
        .get_with("/v1/namespaces", &[("orderBy", "nickname")])
        .await;
    assert_eq!(page.nicknames("namespaces"), ["C", "a", "b", "ä"]);
}
