//! Requests as the receiver sees them: part 6 of SPEC, once for each Scan and Connection.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use test_support::{Answer, eventually};

use crate::support::{World, always};

/// The form of Teams' Workflows, which refuse a request whose query was decoded and encoded again.
#[tokio::test]
async fn path_and_query_are_sent_as_they_were_given() {
    let world = World::new().await;
    let receiver = always(Answer::Status(202)).await;
    let mut paths = [
        // A workflow of Teams.
        "/powerautomate/automations/direct/workflows/01ab/triggers/manual/paths/invoke\
         ?api-version=1&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=abcDEF123-_xyz~&a=%c3%A9+b&&c",
        // A function with its key, and a path that a decoder would make another one.
        "/api/posts%2Fnew;v=1?code=a%2Bb%3D%3D&clientId=",
        "/a%20b//c/?%5B%5D=1&x=y=z&?",
    ];
    let mut connections = Vec::new();
    for path in paths {
        let mut conn = world.database.connect().await;
        let url = receiver.url(path);
        connections.push(world.fixture.connection(&mut conn, &url).await);
    }
    let manager = world.manager(&connections).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
    world.until("SUCCEEDED", 3).await;
    replica.stop().await;
    let mut requested: Vec<String> = { receiver.requests().into_iter() }
        .map(|request| request.path)
        .collect();
    requested.sort();
    paths.sort_unstable();
    assert_eq!(requested, paths);
}

#[tokio::test]
async fn request_contains_only_the_event() {
    let world = World::new().await;
    let receiver = always(Answer::Status(204)).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    let scan = world.publish_scan(manager, "A \"kettle\" – ☕").await;
    world.until("SUCCEEDED", 1).await;
    replica.stop().await;

    let requests = receiver.requests();
    let [request] = requests.as_slice() else {
        panic!("{} requests", requests.len());
    };
    assert_eq!((&*request.method, &*request.path), ("POST", "/hook"));
    let mut headers: BTreeMap<&str, &str> = request
        .headers
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .collect();
    assert_eq!(headers.remove("content-type"), Some("application/json"));
    assert_eq!(headers.remove("x-secret"), Some("hush"));
    let agent = headers.remove("user-agent").unwrap();
    assert!(agent.starts_with("Earshot/"), "{agent}");
    assert_eq!(
        headers.remove("content-length"),
        Some(&*request.body.len().to_string())
    );
    assert!(receiver.url("").ends_with(headers.remove("host").unwrap()));
    assert_eq!(headers, BTreeMap::new());

    let text = String::from_utf8(request.body.clone()).unwrap();
    let begin = format!(r#"{{"type":"SCAN","name":"{scan}","post":{{"type":"FORUM_LINK","#);
    assert!(text.starts_with(&begin), "{text}");
    let body: Value = serde_json::from_str(&text).unwrap();
    let post = &body["post"];
    let mut expected = json!({
        "type": "FORUM_LINK",
        "id": "hackernews:A \"kettle\" – ☕",
        "title": "A \"kettle\" – ☕",
        "text": "text",
        "url": "https://forum.example/hackernews:A \"kettle\" – ☕",
        "subforum": {"id": "s", "name": "Sub", "url": "https://forum.example/s"},
        "user": {"id": "u", "name": "User", "url": "https://forum.example/u"},
    });
    expected["time"] = post["time"].clone();
    assert!(
        post["time"]
            .as_str()
            .is_some_and(|time| time.ends_with('Z'))
    );
    assert_eq!(*post, expected);
    assert_eq!(body.as_object().unwrap().len(), 3);
}

#[tokio::test]
async fn request_uses_the_method_of_the_connection() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let connection = world.connection(&receiver).await;
    world
        .database
        .run("UPDATE connections SET method = 'PUT'")
        .await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
    world.until("SUCCEEDED", 1).await;
    assert_eq!(receiver.requests()[0].method, "PUT");
    replica.stop().await;
}

#[tokio::test]
async fn repeated_events_deliver_each_scan_once() {
    let world = World::new().await;
    let receivers = [
        always(Answer::Status(200)).await,
        always(Answer::Status(202)).await,
    ];
    let connections = [
        world.connection(&receivers[0]).await,
        world.connection(&receivers[1]).await,
    ];
    let both = world.manager(&connections).await;
    let none = world.manager(&[]).await;
    let replicas = [
        world.ready_dispatcher().await,
        world.ready_dispatcher().await,
    ];
    let mut scans = BTreeSet::new();
    for number in 0..20 {
        let scan = world.scan(both, &format!("kettle {number}")).await;
        for _ in 0..3 {
            world.publish_created(scan).await;
        }
        scans.insert(scan.to_string());
    }
    world.publish_scan(none, "kettle for nobody").await;
    world.until("SUCCEEDED", 40).await;
    eventually("all are fanned out", async || {
        let open = "scans WHERE NOT fanned_out";
        world.database.count(open).await == 0
    })
    .await;
    for replica in replicas {
        replica.stop().await;
    }
    for receiver in &receivers {
        let told: Vec<String> = receiver
            .requests()
            .iter()
            .map(|request| {
                let body: Value = serde_json::from_slice(&request.body).unwrap();
                body["name"].as_str().unwrap().to_owned()
            })
            .collect();
        assert_eq!(told.len(), 20);
        assert_eq!(told.into_iter().collect::<BTreeSet<_>>(), scans);
    }
    assert_eq!(world.database.count("deliveries").await, 40);
    assert_eq!(world.database.count("delivery_attempts").await, 40);
}
