//! No operation of `openapi.yaml` shows, changes or reveals resources of another customer.
//!
//! Another account's Namespace is 403 (part 5 of the specification), with any resource below it. A resource of
//! another Namespace of the same account is 404, as if it did not exist.

use domain::key::Role;
use serde_json::json;

use crate::{
    app::{TestApp, last_id},
    client::{Answer, manager_body},
    estate::{Estate, operations, stored},
    surface::call,
};

/// Content of a response, without the parts that always differ.
fn told(answer: &Answer) -> (u16, String, Vec<(String, String)>) {
    let mut headers: Vec<(String, String)> = answer
        .headers
        .iter()
        .filter(|(name, _)| {
            !matches!(name.as_str(), "date" | "x-request-id")
                && !name.as_str().starts_with("x-ratelimit-")
        })
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    headers.sort();
    (answer.status, answer.body.to_string(), headers)
}

#[tokio::test]
async fn namespace_of_another_account_reveals_nothing_and_never_changes() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let estate = Estate::make(&app, &acme).await;
    let globex = app.account("globex").await;
    let own = globex.namespace().await;
    // A key of the same account, restricted to another of its Namespaces.
    let other = acme.namespace().await;
    let narrowed = app.key("acme", Role::Owner, Some(&[&other])).await;

    let before = stored(&app.database).await;
    for operation in operations() {
        let (what, depth) = (&operation.template, operation.depth());
        if depth == 0 {
            continue;
        }
        for client in [&globex, &narrowed] {
            let path = estate.path(what, depth, None);
            let there = operation.call(client, &path, false).await;
            assert_eq!(there.status, 403, "{} {what}", operation.method);
            // Permissions are checked before the query and the body.
            let invalid = call(client, &operation.method, &format!("{path}?colour=red")).await;
            assert_eq!(invalid.status, 403, "{} {what}", operation.method);
            let not_there = estate.path(what, 1, None);
            let not_there = operation.call(client, &not_there, false).await;
            assert_eq!(
                told(&there),
                told(&not_there),
                "{} {what}",
                operation.method
            );
        }
    }
    assert_eq!(stored(&app.database).await, before);
    // Operations without a Namespace in the path show the caller's own resources.
    for (client, expected) in [(&globex, &own), (&narrowed, &other)] {
        let listed = client.get("/v1/namespaces?pageSize=100").await;
        assert_eq!(listed.names("namespaces"), [expected]);
        let caller = client.get("/v1/caller").await.body.to_string();
        assert!(!caller.contains(&estate.namespace), "{caller}");
    }
}

#[tokio::test]
async fn resource_of_another_parent_is_not_found() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let here = Estate::make(&app, &acme).await;
    let elsewhere = Estate::make(&app, &acme).await;
    let beside = Estate::make_in(&app, &acme, here.namespace.clone()).await;
    let strangers = Estate::make(&app, &app.account("globex").await).await;

    let before = stored(&app.database).await;
    let mut seen = 0;
    for operation in operations() {
        let (what, depth) = (&operation.template, operation.depth());
        if depth > 1 {
            let namespace = last_id(&here.namespace).to_string();
            let path = what.replace("{namespaceId}", &namespace);
            let path = path.replace('{', "-").replace('}', "");
            let answer = operation.call(&acme, &path, false).await;
            assert_eq!(answer.status, 404, "{} {path}", operation.method);
        }
        // Replaces one path segment after the other with one from elsewhere.
        for kept in 1..depth {
            let missing = here.path(what, kept, None);
            let missing = operation.call(&acme, &missing, false).await;
            assert_eq!(
                missing.status, 404,
                "{} {what}: {}",
                operation.method, missing.body
            );
            // The first resource below the Namespace belongs there, too.
            let others = [&elsewhere, &strangers, &beside];
            let others = if kept == 1 { &others[..2] } else { &others[..] };
            for other in others {
                let path = here.path(what, kept, Some(other));
                let answer = operation.call(&acme, &path, false).await;
                assert_eq!(told(&answer), told(&missing), "{} {path}", operation.method);
                seen += 1;
            }
        }
    }
    assert!(seen > 60, "{seen} requests");
    assert_eq!(stored(&app.database).await, before);
}

#[tokio::test]
async fn bodies_and_page_tokens_cannot_reach_resources_of_others() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let globex = app.account("globex").await;
    let theirs = Estate::make(&app, &acme).await;
    let elsewhere = globex.namespace().await;
    let there = globex.connection(&elsewhere).await;
    let own = globex.namespace().await;
    let missing = format!("{own}/connections/{}", domain::Id::generate());
    let foreign_id = theirs.connection.rsplit('/').next().unwrap();
    let disguised = format!("{own}/connections/{foreign_id}");
    for connection in [&theirs.connection, &there, &missing, &disguised] {
        let mut body = manager_body();
        body["notices"] = json!([{"type": "HTTP_REQUEST", "connection": connection}]);
        let answer = globex.post(&format!("/v1/{own}/managers"), &body).await;
        let expected = [("notices[0].connection", "not_found")];
        assert_eq!(answer.details(), expected, "{connection}");
    }
    // A page token of another list does not work in one's own list.
    acme.connection(&theirs.namespace).await;
    let page = acme
        .get(&format!("/v1/{}/connections?pageSize=1", theirs.namespace))
        .await;
    let token = page.body["nextPageToken"].as_str().unwrap();
    let list = format!("/v1/{elsewhere}/connections");
    let answer = globex.get_with(&list, &[("pageToken", token)]).await;
    assert_eq!(answer.details(), [("pageToken", "invalid_format")]);
}

/// Otherwise the time of the answer would depend on them.
#[tokio::test]
async fn scans_of_others_are_not_read_before_the_403() {
    let app = TestApp::start().await;
    let theirs = Estate::make(&app, &app.account("acme").await).await;
    let globex = app.account("globex").await;
    let _locked = app
        .database
        .begin(&["LOCK TABLE scans IN ACCESS EXCLUSIVE MODE"])
        .await;
    let path = format!("/v1/{}/scans", theirs.manager);
    let search = [("filter", r#"post.text : "nowhere""#)];
    // A read would wait for the lock, and be cut off with 503.
    assert_eq!(globex.get_with(&path, &search).await.status, 403);
}
