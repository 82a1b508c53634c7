//! `/mail/`: the pages that links in mails lead to, and the recipients of a Connection.

use domain::{ConnectionName, connection::MailAddress, key::Role};
use reqwest::Response;
use serde_json::{Value, json};
use store::{
    mail::token::{self, Purpose},
    seal::Sealer,
};

use crate::{app::TestApp, client::Client};

const ADDRESS: &str = "ada@example.com";

fn body() -> Value {
    json!({
        "nickname": "mail", "type": "HTTP_CONNECTION", "format": "EMAIL",
        "url": "mailto:ada@example.com,grace@example.com"
    })
}

/// Path of a link in a mail to `address`, as a dispatcher makes it.
fn link(purpose: Purpose, connection: &str, address: &str) -> String {
    let sealer = Sealer::new([("test".to_owned(), [7; 32])]).unwrap();
    let name: ConnectionName = connection.parse().unwrap();
    let digest = address.parse::<MailAddress>().unwrap().digest();
    let token = token::seal(&sealer, purpose, name, digest);
    format!("/{}/{token}", purpose.path())
}

async fn open(app: &TestApp, path: &str) -> Response {
    runtime::crypto::install();
    reqwest::get(format!("{}{path}", app.base)).await.unwrap()
}

/// Sends the request of a mail program that unsubscribes with one click.
async fn post(app: &TestApp, path: &str) -> Response {
    runtime::crypto::install();
    let request = reqwest::Client::new().post(format!("{}{path}", app.base));
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    request
        .body("List-Unsubscribe=One-Click")
        .send()
        .await
        .unwrap()
}

async fn states(client: &Client, connection: &str) -> Vec<String> {
    let read = client.get(&format!("/v1/{connection}")).await.body;
    let recipients = read["recipients"].as_array().unwrap();
    let state = |one: &Value| one["state"].as_str().unwrap().to_owned();
    recipients.iter().map(state).collect()
}

#[tokio::test]
async fn recipients_have_to_confirm_and_can_unsubscribe() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let path = format!("/v1/{namespace}/connections");
    let name = acme.made(&path, &body()).await;
    assert_eq!(states(&acme, &name).await, ["PENDING", "PENDING"]);

    // Scanners of links follow them. Only a POST acts.
    for purpose in [Purpose::Confirm, Purpose::Unsubscribe] {
        let page = open(&app, &link(purpose, &name, ADDRESS)).await;
        assert_eq!(page.status(), 200);
        let policy = &page.headers()["content-security-policy"];
        assert!(policy.to_str().unwrap().contains("form-action 'self'"));
        assert_eq!(page.headers()["cache-control"], "no-store");
        assert!(
            page.text()
                .await
                .unwrap()
                .contains("<form method=\"post\">")
        );
    }
    assert_eq!(states(&acme, &name).await, ["PENDING", "PENDING"]);

    for _ in 0..2 {
        let answer = post(&app, &link(Purpose::Confirm, &name, ADDRESS)).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(states(&acme, &name).await, ["CONFIRMED", "PENDING"]);
    }
    for (address, expected, state) in [
        (ADDRESS, ["UNSUBSCRIBED", "PENDING"], "ACTIVE"),
        ("grace@example.com", ["UNSUBSCRIBED"; 2], "DISABLED"),
    ] {
        let answer = post(&app, &link(Purpose::Unsubscribe, &name, address)).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(states(&acme, &name).await, expected);
        let read = acme.get(&format!("/v1/{name}")).await;
        assert_eq!(read.body["state"], state);
    }
}

#[tokio::test]
async fn entering_an_address_again_does_not_undo_its_unsubscription() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let path = format!("/v1/{namespace}/connections");
    let name = acme.made(&path, &body()).await;
    post(&app, &link(Purpose::Confirm, &name, "grace@example.com")).await;
    post(&app, &link(Purpose::Unsubscribe, &name, ADDRESS)).await;
    for url in [
        "mailto:grace@example.com",
        "mailto:grace@example.com,ada@example.com",
    ] {
        let answer = acme
            .patch(&format!("/v1/{name}"), &json!({"url": url}))
            .await;
        assert_eq!(answer.status, 200);
    }
    assert_eq!(states(&acme, &name).await, ["CONFIRMED", "UNSUBSCRIBED"]);
    // A new recipient has to confirm.
    let change = json!({"url": "mailto:new@example.com,grace@example.com"});
    acme.patch(&format!("/v1/{name}"), &change).await;
    assert_eq!(states(&acme, &name).await, ["PENDING", "CONFIRMED"]);
}

#[tokio::test]
async fn token_of_another_purpose_or_of_a_removed_address_does_not_work() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let name = acme
        .made(&format!("/v1/{namespace}/connections"), &body())
        .await;
    let confirm = link(Purpose::Confirm, &name, ADDRESS);
    let swapped = confirm.replace("/confirm/", "/unsubscribe/");
    let strange = link(Purpose::Confirm, &name, "eve@example.com");
    for path in [
        swapped.as_str(),
        strange.as_str(),
        "/mail/confirm/00",
        "/mail/confirm/é",
    ] {
        assert_eq!(post(&app, path).await.status(), 404, "{path}");
    }
    assert_eq!(states(&acme, &name).await, ["PENDING", "PENDING"]);
}

#[tokio::test]
async fn token_of_one_account_does_nothing_to_connections_of_another() {
    let app = TestApp::start().await;
    let (acme, globex) = (app.account("acme").await, app.account("globex").await);
    let mut names = Vec::new();
    for client in [&acme, &globex] {
        let namespace = client.namespace().await;
        let path = format!("/v1/{namespace}/connections");
        names.push(client.made(&path, &body()).await);
    }
    let [ours, theirs] = [&names[0], &names[1]];
    // Their Connection in our Namespace does not exist.
    let (namespace, _) = ours.split_once("/connections/").unwrap();
    let (_, id) = theirs.split_once("/connections/").unwrap();
    let mixed = format!("{namespace}/connections/{id}");
    let answer = post(&app, &link(Purpose::Confirm, &mixed, ADDRESS)).await;
    assert_eq!(answer.status(), 404);
    for purpose in [Purpose::Confirm, Purpose::Unsubscribe] {
        for address in [ADDRESS, "grace@example.com"] {
            for name in [ours, &mixed] {
                post(&app, &link(purpose, name, address)).await;
            }
        }
    }
    assert_eq!(states(&acme, ours).await, ["UNSUBSCRIBED"; 2]);
    assert_eq!(states(&globex, theirs).await, ["PENDING"; 2]);
    let read = globex.get(&format!("/v1/{theirs}")).await;
    assert_eq!(read.body["state"], "ACTIVE");
}

#[tokio::test]
async fn addresses_are_sealed_and_masked() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let path = format!("/v1/{namespace}/connections");
    let name = acme.made(&path, &body()).await;
    let viewer = app.key("acme", Role::Viewer, None).await;
    for path in [format!("/v1/{name}"), path.clone()] {
        let read = viewer.get(&path).await.body.to_string();
        assert!(
            !read.contains("ada@") && read.contains("***@example.com"),
            "{read}"
        );
        let read = acme.get(&path).await.body.to_string();
        assert!(read.contains(r#""address":"ada@example.com""#), "{read}");
    }
    for table in ["connections", "mail_recipients"] {
        let stored = app
            .database
            .texts("to_jsonb(t)", &format!("{table} AS t"))
            .await;
        assert!(!stored.concat().contains("ada@"), "{stored:?}");
    }
    let other = app.account("other").await;
    assert_eq!(other.get(&format!("/v1/{name}")).await.status, 403);
}

#[tokio::test]
async fn mail_is_changed_by_those_who_may_write() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let path = format!("/v1/{namespace}/connections");
    let mut body = body();
    body["digest"] = json!({"period": "DAILY", "timeZone": "Europe/Berlin"});
    let name = acme.made(&path, &body).await;
    let one = format!("/v1/{name}");
    let before = acme.get(&one).await.body;
    let viewer = app.key("acme", Role::Viewer, None).await;
    let other = app.account("other").await;
    for client in [&viewer, &other] {
        for change in [
            json!({"digest": {"period": "HOURLY"}}),
            json!({"digest": null}),
            json!({"format": "SLACK"}),
            json!({"url": "mailto:eve@example.com"}),
        ] {
            assert_eq!(client.patch(&one, &change).await.status, 403, "{change}");
        }
        assert_eq!(client.post(&path, &body).await.status, 403);
    }
    assert_eq!(acme.get(&one).await.body, before);
    assert_eq!(app.database.count("mail_recipients").await, 2);
    // Not even the owner says that someone has confirmed.
    let recipients = json!([{"address": ADDRESS, "state": "CONFIRMED"}]);
    acme.patch(&one, &json!({"recipients": recipients})).await;
    assert_eq!(states(&acme, &name).await, ["PENDING", "PENDING"]);
}

#[tokio::test]
async fn digest_needs_a_time_zone_that_exists() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let path = format!("/v1/{namespace}/connections");
    let mut wrong = body();
    wrong["digest"] = json!({"period": "DAILY", "timeZone": "Europe/Atlantis"});
    let answer = acme.post(&path, &wrong).await;
    assert_eq!(answer.details(), [("digest.timeZone", "invalid_enum")]);
    let mut daily = body();
    daily["digest"] = json!({"period": "DAILY", "timeZone": "Europe/Berlin"});
    let name = acme.made(&path, &daily).await;
    let read = acme.get(&format!("/v1/{name}")).await.body;
    assert_eq!(read["digest"], daily["digest"]);
    // The rest stays.
    let change = json!({"digest": {"period": "HOURLY"}});
    let changed = acme.patch(&format!("/v1/{name}"), &change).await.body;
    let expected = json!({"period": "HOURLY", "timeZone": "Europe/Berlin"});
    assert_eq!(changed["digest"], expected);
    let changed = acme
        .patch(&format!("/v1/{name}"), &json!({"digest": null}))
        .await;
    assert!(changed.body.get("digest").is_none());
}

#[tokio::test]
async fn format_and_address_belong_together() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let path = format!("/v1/{namespace}/connections");
    let mut wrong = body();
    wrong["format"] = json!("SLACK");
    wrong["nickname"] = json!("chat");
    assert_eq!(
        acme.post(&path, &wrong).await.details(),
        [("url", "conflict")]
    );
    let mut wrong = body();
    wrong["headers"] = json!({"Bcc": "eve@example.com"});
    assert_eq!(
        acme.post(&path, &wrong).await.details(),
        [("headers", "conflict")]
    );
    let name = acme.made(&path, &body()).await;
    // Neither to a webhook nor from one: what its recipients wait for would be lost.
    let hook = json!({"url": "https://hooks.example.com/", "format": "EARSHOT"});
    for change in [&hook, &json!({"format": null})] {
        let changed = acme.patch(&format!("/v1/{name}"), change).await;
        assert_eq!(changed.details(), [("format", "conflict")]);
    }
    assert_eq!(app.database.count("mail_recipients").await, 2);
    let mut other = hook;
    other["nickname"] = json!("hook");
    other["type"] = json!("HTTP_CONNECTION");
    let other = acme.made(&path, &other).await;
    let change = json!({"url": "mailto:ada@example.com", "format": "EMAIL"});
    let changed = acme.patch(&format!("/v1/{other}"), &change).await;
    assert_eq!(changed.details(), [("format", "conflict")]);
}
