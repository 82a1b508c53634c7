//! The audit log: one event for each committed change, and none for others.

use std::net::{IpAddr, Ipv4Addr};

use domain::key::Role;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{app::TestApp, client::Client};

/// The actions and resources of a list, oldest first.
async fn log(client: &Client, scope: &str) -> Vec<(String, String)> {
    let path = format!("/v1/{scope}/auditEvents?pageSize=100&orderBy=createTime");
    let answer = client.get(&path).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let events = answer.body["auditEvents"].as_array().unwrap();
    let pairs = events
        .iter()
        .map(|event| (text(&event["action"]), text(&event["resource"])));
    pairs.collect()
}

async fn patch(client: &Client, name: &str, body: &Value) -> u16 {
    client.patch(&format!("/v1/{name}"), body).await.status
}

#[tokio::test]
async fn changes_are_recorded_with_their_author_and_without_values() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let connection = acme.connection(&namespace).await;
    let change = json!({"nickname": "hush-hush"});
    assert_eq!(patch(&acme, &connection, &change).await, 200);
    // Sends no field, so nothing changes, but the response shows the address.
    assert_eq!(patch(&acme, &connection, &json!({})).await, 200);
    acme.get(&format!("/v1/{connection}")).await;
    let gone = acme.delete(&format!("/v1/{connection}")).await;
    assert_eq!(gone.status, 200);

    let pair = |action: &str, name: &str| (action.to_owned(), name.to_owned());
    let expected = [
        pair("CREATE", &namespace),
        pair("CREATE", &connection),
        pair("UPDATE", &connection),
        pair("READ_SECRETS", &connection),
        pair("DELETE", &connection),
    ];
    assert_eq!(log(&acme, &namespace).await, expected);

    let filter = "filter=action%20%3D%20UPDATE%20AND%20fields%3A%22nick%22";
    let path = format!("/v1/{namespace}/auditEvents?{filter}");
    let answer = acme.get(&path).await;
    let event = &answer.body["auditEvents"][0];
    assert_eq!(event["fields"], json!(["nickname"]));
    assert_eq!(event["actor"]["type"], "API_KEY");
    assert_eq!(event["clientAddress"], "127.0.0.1");
    assert!(event["requestId"].is_string());
    assert!(!answer.body.to_string().contains("hush-hush"));

    // Orders and page tokens, with several events per page.
    let order = "orderBy=action%20desc,createTime";
    let path = format!("/v1/{namespace}/auditEvents?pageSize=2&{order}");
    let mut seen = Vec::new();
    let mut token = String::new();
    loop {
        let page = acme.get(&format!("{path}&pageToken={token}")).await.body;
        let events = page["auditEvents"].as_array().unwrap();
        assert!(events.len() <= 2);
        seen.extend(events.iter().map(|event| event["action"].clone()));
        match page["nextPageToken"].as_str() {
            Some(next) => next.clone_into(&mut token),
            None => break,
        }
    }
    let in_order = ["UPDATE", "READ_SECRETS", "DELETE", "CREATE", "CREATE"];
    assert_eq!(seen, in_order);

    // A deleted Namespace is still in the log of its account.
    let path = format!("/v1/{namespace}?force=true");
    acme.delete(&path).await;
    let whole = log(&acme, "namespaces/-").await;
    assert_eq!(whole.last(), Some(&pair("DELETE", &namespace)));
}

#[tokio::test]
async fn audit_event_exists_if_and_only_if_its_change_was_committed() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let before = log(&acme, &namespace).await;

    let nickname = json!({"nickname": "other"});
    assert_eq!(
        patch(&acme, &namespace, &json!({"nickname": ""})).await,
        400
    );
    assert_eq!(log(&acme, &namespace).await, before);

    // A commit that fails also removes the event.
    let function = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
                    $$ BEGIN RAISE EXCEPTION 'no'; END $$";
    app.database.run(function).await;
    let at_commit = "CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON namespaces DEFERRABLE INITIALLY DEFERRED \
                     FOR EACH ROW EXECUTE FUNCTION refuse()";
    app.database.run(at_commit).await;
    assert!(patch(&acme, &namespace, &nickname).await >= 500);
    assert_eq!(log(&acme, &namespace).await, before);
    app.database.run("DROP TRIGGER refuse ON namespaces").await;

    // An event that cannot be written also rolls back the change.
    let at_event = "CREATE TRIGGER refuse BEFORE INSERT ON audit_events FOR EACH ROW EXECUTE FUNCTION refuse()";
    app.database.run(at_event).await;
    assert!(patch(&acme, &namespace, &nickname).await >= 500);
    let now = acme.get(&format!("/v1/{namespace}")).await;
    assert_ne!(now.body["nickname"], "other");
}

#[tokio::test]
async fn owners_read_the_audit_log_of_their_own_account_only() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let globex = app.account("globex").await;
    let path = format!("/v1/{namespace}/auditEvents");
    let narrowed = app.key("acme", Role::Owner, Some(&[&namespace])).await;
    assert_eq!(narrowed.get(&path).await.status, 200);
    assert_eq!(
        narrowed.get("/v1/namespaces/-/auditEvents").await.status,
        403
    );
    assert_eq!(log(&globex, "namespaces/-").await, []);
    // A page token of one list does not work in another.
    acme.connection(&namespace).await;
    let page = acme.get(&format!("{path}?pageSize=1")).await;
    let token = page.body["nextPageToken"].as_str().unwrap();
    for client in [&acme, &globex] {
        let query = [("pageToken", token)];
        let answer = client
            .get_with("/v1/namespaces/-/auditEvents", &query)
            .await;
        assert_eq!(answer.details(), [("pageToken", "invalid_format")]);
    }
}

#[tokio::test]
async fn refused_request_records_no_read_of_secrets() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let connection = acme.connection(&namespace).await;
    let missing = format!("{namespace}/connections/{}", domain::Id::generate());
    assert_eq!(patch(&acme, &missing, &json!({})).await, 404);
    let test = |request: reqwest::RequestBuilder| {
        let body = json!({"nickname": "x"});
        request.header("x-test", "true").json(&body)
    };
    for (name, status) in [(&missing, 404), (&connection, 200)] {
        let path = format!("/v1/{name}");
        let answer = acme.send(Method::PATCH, &path, test).await;
        assert_eq!(answer.status, status);
    }
    let read = ("READ_SECRETS".to_owned(), connection);
    assert_eq!(log(&acme, &namespace).await[2..], [read]);
}

#[tokio::test]
async fn secrets_are_recorded_again_for_another_address() {
    let app = TestApp::start().await;
    let key = app.owner_key("acme").await;
    let acme = Client::new(&app.base, Some(key.clone()));
    let namespace = acme.namespace().await;
    let connection = acme.connection(&namespace).await;
    for last in [2, 2, 3] {
        let address = IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
        let http = reqwest::Client::builder().local_address(address);
        let url = format!("{}/v1/{connection}", app.base);
        let request = http.build().unwrap().get(url).bearer_auth(&key);
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
    let filter = "filter=action%20%3D%20READ_SECRETS&orderBy=createTime";
    let path = format!("/v1/{namespace}/auditEvents?{filter}");
    let events = acme.get(&path).await.body["auditEvents"].clone();
    let addresses = events.as_array().unwrap().iter();
    let addresses: Vec<&Value> = addresses.map(|event| &event["clientAddress"]).collect();
    assert_eq!(addresses, ["127.0.0.2", "127.0.0.3"]);
}
