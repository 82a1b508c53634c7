//! A Manager's decisions on given posts, and its excluded posts.

use std::{
    sync::{Arc, Barrier},
    thread::available_parallelism,
};

use domain::key::Role;
use serde_json::{Value, json};
use test_support::eventually;
use tokio::io::AsyncWriteExt;

use crate::{app::TestApp, client::manager_body};

fn post(id: &str, title: &str) -> Value {
    json!({
        "type": "FORUM_LINK", "time": "2026-11-21T01:00:00.000000Z", "id": id, "title": title,
        "url": "https://blog.example.com/1", "subforum": {"id": "ask", "name": "Ask", "url": "https://a.example/"},
        "user": {"id": "pat", "name": "Pat", "url": "https://a.example/pat"}
    })
}

fn reasons(body: &Value) -> Vec<&str> {
    let results = body["results"].as_array().unwrap();
    results
        .iter()
        .map(|result| result["reason"].as_str().unwrap())
        .collect()
}

fn kettles() -> Value {
    json!({
        "feeds": ["hackernews:newest"], "include": [{"text": "kettle", "weight": 1}, {"text": "steel", "weight": 1}],
        "require": [["buy", "which"]], "exclude": ["toaster"], "threshold": 2
    })
}

#[tokio::test]
async fn preview_shows_the_decision_and_reason_for_each_post() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = app.manual_manager(&acme, &namespace, &kettles()).await;
    let path = format!("/v1/{manager}:preview");
    let mut tweet = post("hackernews:6", "Which steel kettle?");
    tweet["type"] = json!("MICROBLOG_TWEET");
    let posts = [
        post("hackernews:1", "Wür: which steel kettle?"),
        post("hackernews:2", "Which kettle?"),
        post("hackernews:3", "A steel kettle"),
        post("hackernews:4", "Which steel kettle, which toaster?"),
        post("lemmy:5", "Which steel kettle?"),
        tweet,
    ];
    // A key that may read may also preview.
    let viewer = app.key("acme", Role::Viewer, None).await;
    let answer = viewer.post(&path, &json!({ "posts": posts })).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(
        reasons(&answer.body),
        [
            "MATCHED",
            "BELOW_THRESHOLD",
            "REQUIRE",
            "EXCLUDE",
            "NOT_WATCHED",
            "NOT_WATCHED"
        ]
    );
    let first = &answer.body["results"][0];
    assert_eq!(
        (&first["value"], &first["match"]["score"]),
        (&json!(true), &json!(2.0))
    );
    assert_eq!(
        first["match"]["spans"],
        json!([
            {"field": "title", "start": 5, "end": 10, "term": "which"},
            {"field": "title", "start": 11, "end": 16, "term": "steel"},
            {"field": "title", "start": 17, "end": 23, "term": "kettle"}
        ])
    );
    let second = &answer.body["results"][1];
    assert_eq!(
        (&second["value"], &second["match"]["terms"]),
        (&json!(false), &json!(["kettle", "which"]))
    );

    let draft = json!({"posts": posts[..2], "instructions": {"include": [{"text": "kettle", "weight": 1}]}});
    let answer = viewer.post(&path, &draft).await;
    assert_eq!(reasons(&answer.body), ["MATCHED", "MATCHED"]);
    assert_eq!(app.database.count("scans").await, 0);
    assert_eq!(app.database.count("posts").await, 0);
}

#[tokio::test]
async fn preview_with_a_focus_shows_the_intent() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = acme.manager(&namespace).await;
    let draft =
        json!({"include": [{"text": "kettle", "weight": 1}], "focus": "SALES", "threshold": 0.1});
    let body = json!({"posts": [post("hackernews:1", "Which kettle should I buy?")], "instructions": draft});
    let answer = acme.post(&format!("/v1/{manager}:preview"), &body).await;
    let signals = &answer.body["results"][0]["match"]["signals"];
    assert!(
        signals["buying"].as_f64() > signals["trouble"].as_f64(),
        "{}",
        answer.body
    );
}

#[tokio::test]
async fn preview_shows_exclusions_which_take_effect_at_once() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let instructions = json!({"include": [{"text": "kettle", "weight": 1}]});
    let manager = app.manual_manager(&acme, &namespace, &instructions).await;
    let long = "Which steel kettle would you recommend for a small kitchen with hard water?";
    let posts = json!({"posts": [post("hackernews:1", long)]});
    let path = format!("/v1/{manager}:preview");
    let at_work = app.database.texts("version::text", "plan_version").await;

    for (name, body, reason) in [
        (
            &namespace,
            json!({"mutes": [{"type": "SITE", "value": "example.com"}]}),
            "MUTED",
        ),
        (&namespace, json!({"mutes": null}), "MATCHED"),
        (
            &manager,
            json!({"mutes": [{"type": "AUTHOR", "value": "@pat"}]}),
            "MUTED",
        ),
        (
            &manager,
            json!({"mutes": [{"type": "AUTHOR", "value": "@pat", "expireTime": "2020-01-01T00:00:00Z"}]}),
            "MATCHED",
        ),
        (
            &manager,
            json!({"mutes": [{"type": "TERM", "value": "hard water"}]}),
            "MUTED",
        ),
        (
            &manager,
            json!({"mutes": [], "languages": ["de"]}),
            "LANGUAGE",
        ),
        (&manager, json!({"languages": ["de", "en-GB"]}), "MATCHED"),
    ] {
        let changed = acme.patch(&format!("/v1/{name}"), &body).await;
        assert_eq!(changed.status, 200, "{}", changed.body);
        let answer = acme.post(&path, &posts).await;
        assert_eq!(reasons(&answer.body), [reason], "{body}");
    }
    let read = acme.get(&format!("/v1/{manager}")).await.body;
    assert_eq!(read["languages"], json!(["de", "en"]));
    // Each change is a new version of what the scanner matches.
    let now = app.database.texts("version::text", "plan_version").await;
    let version = |texts: &[String]| texts[0].parse::<i64>().unwrap();
    assert_eq!(version(&now) - version(&at_work), 7);
}

#[tokio::test]
async fn preview_names_posts_that_cannot_be_tried() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    // Not compiled yet.
    let manager = acme.manager(&namespace).await;
    let path = format!("/v1/{manager}:preview");
    let one = post("hackernews:1", "x");
    for (body, details) in [
        (json!({"posts": [one]}), vec![("instructions", "required")]),
        (json!({"posts": []}), vec![("posts", "too_short")]),
        (
            json!({"recent": 0, "urls": ["x"]}),
            vec![("urls", "conflict"), ("recent", "out_of_range")],
        ),
        (
            json!({"posts": [one], "instructions": {"feeds": ["reddit:r/rust"], "exclude": ["x"]}}),
            vec![("instructions.feeds[0]", "not_found")],
        ),
    ] {
        let answer = acme.post(&path, &body).await;
        assert_eq!((answer.status, answer.details()), (400, details), "{body}");
    }
    let missing = format!(
        "/v1/{namespace}/managers/{}:preview",
        domain::Id::generate()
    );
    for posts in [json!([one]), json!(5)] {
        let answer = acme.post(&missing, &json!({"posts": posts})).await;
        assert_eq!(answer.status, 404);
    }
}

#[tokio::test]
async fn mutes_languages_and_daily_bound_are_stored() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let mut body = manager_body();
    body["mutes"] = json!([{"type": "SUBFORUM", "value": "jobs"}]);
    body["languages"] = json!(["EN"]);
    body["maxScansPerDay"] = json!(50);
    let made = acme.post(&format!("/v1/{namespace}/managers"), &body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(made.body["health"], json!({"state": "OK", "reasons": []}));
    assert_eq!(
        (&made.body["mutes"], &made.body["languages"]),
        (&body["mutes"], &json!(["en"]))
    );
    let name = made.body["name"].as_str().unwrap();
    assert_eq!(acme.get(&format!("/v1/{name}")).await.body, made.body);
    let listed = acme
        .get_with(
            &format!("/v1/{namespace}/managers"),
            &[("filter", "maxScansPerDay >= 50")],
        )
        .await;
    assert_eq!(listed.body["managers"], json!([made.body]));

    body["maxScansPerDay"] = json!(0);
    body["languages"] = json!(["klingon"]);
    let refused = acme.post(&format!("/v1/{namespace}/managers"), &body).await;
    assert_eq!(
        refused.details(),
        [
            ("languages[0]", "invalid_format"),
            ("maxScansPerDay", "out_of_range")
        ]
    );
}

/// Returns true if the metrics of this process have this line.
fn metric(line: &str) -> bool {
    let families = prometheus::gather();
    let text = prometheus::TextEncoder::new().encode_to_string(&families);
    text.unwrap().lines().any(|one| one == line)
}

/// Or it could match as many posts at once as it likes.
#[tokio::test]
async fn preview_of_a_client_that_left_counts_until_its_posts_are_matched() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = app.manual_manager(&acme, &namespace, &kettles()).await;
    let path = format!("/v1/{manager}:preview");
    let another = json!({"posts": [post("hackernews:1", "Which steel kettle?")]});
    // No posts are matched while all background threads are busy.
    let threads = available_parallelism().unwrap().get();
    let gate = Arc::new(Barrier::new(threads + 1));
    for _ in 0..threads {
        let gate = Arc::clone(&gate);
        runtime::background::spawn(move || gate.wait());
    }
    // It has its place when it reads.
    let reading = app
        .database
        .begin(&["LOCK TABLE recent_posts IN ACCESS EXCLUSIVE MODE"])
        .await;
    let request = acme.request(reqwest::Method::POST, &path).build().unwrap();
    let key = request.headers()["authorization"].to_str().unwrap();
    let body = r#"{"recent": 1}"#;
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\nauthorization: {key}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut client = app.connect().await;
    client.write_all(request.as_bytes()).await.unwrap();
    let waiting =
        "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    eventually("it reads", async || app.database.count(waiting).await == 1).await;
    drop(reading);
    assert_eq!(acme.post(&path, &another).await.status, 429);

    // The gateway ends its request when it reads the reset.
    client.set_zero_linger().unwrap();
    drop(client);
    let none_is_open = r#"http_server_active_requests{http_request_method="POST"} 0"#;
    eventually("its request has ended", async || metric(none_is_open)).await;
    assert_eq!(acme.post(&path, &another).await.status, 429);

    tokio::task::spawn_blocking(move || gate.wait())
        .await
        .unwrap();
    eventually("another is matched", async || {
        acme.post(&path, &another).await.status == 200
    })
    .await;
}
