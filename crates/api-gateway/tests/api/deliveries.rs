//! The delivery log, retries, replays and tests of Connections. No dispatcher runs here: the tests write its
//! results into the database.

use domain::{ConnectionName, Id, Timestamp, key::Role};
use reqwest::Method;
use serde_json::{Value, json};
use store::trial_deliveries;
use test_support::eventually;

use crate::{
    app::{TestApp, last_id},
    client::Client,
};

struct World {
    app: TestApp,
    acme: Client,
    namespace: String,
    connection: String,
    delivery: String,
}

/// An exhausted delivery with one attempt.
async fn world() -> World {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let connection = acme.connection(&namespace).await;
    let manager = acme.manager(&namespace).await;
    let (scan, delivery) = (Id::generate(), Id::generate());
    let uuid = |name: &str| last_id(name).to_uuid();
    let (ns, c, m) = (uuid(&namespace), uuid(&connection), uuid(&manager));
    let (s, d) = (scan.to_uuid(), delivery.to_uuid());
    let (scan_time, time) = (scan.time(), delivery.time());
    for sql in [
        format!(
            "INSERT INTO scans (namespace_id, manager_id, id, create_time, update_time, post_id, post_receive_time, value, \
                 matched, fanned_out) VALUES ('{ns}', '{m}', '{s}', '{scan_time}', now(), '{s}', now(), true, '{{}}', true)"
        ),
        format!(
            "INSERT INTO deliveries (namespace_id, connection_id, id, create_time, update_time, manager_id, scan_id, state, \
                 attempt_count, last_attempt_time, last_status_code) \
             VALUES ('{ns}', '{c}', '{d}', '{time}', now(), '{m}', '{s}', 'EXHAUSTED', 1, now(), 503)"
        ),
        format!(
            "INSERT INTO delivery_attempts VALUES ('{d}', 1, now(), 503, NULL, 21, 1, 2, 3, 20, '203.0.113.7', 'busy')"
        ),
    ] {
        assert_eq!(app.database.run(&sql).await, 1);
    }
    World {
        delivery: format!("{connection}/deliveries/{delivery}"),
        app,
        acme,
        namespace,
        connection,
    }
}

impl World {
    async fn post(&self, path: &str, body: &Value) -> crate::client::Answer {
        self.acme.post(&format!("/v1/{path}"), body).await
    }

    async fn dispatcher_lives(&self) {
        let sql = "INSERT INTO replicas VALUES (gen_random_uuid(), 'webhook-dispatcher', now() + interval '1 hour')";
        self.app.database.run(sql).await;
    }
}

#[tokio::test]
async fn delivery_of_a_service_event_shows_the_event_and_no_scan() {
    let world = world().await;
    let event = json!({
        "type": "POST_DELETED", "id": Id::generate(), "time": "2026-11-21T01:02:03.000123Z",
        "name": format!("{}/managers/{}", world.namespace, Id::generate()), "post": {"id": "forum:1"},
    });
    let sql = format!("UPDATE deliveries SET manager_id = NULL, scan_id = NULL, event = '{event}'");
    assert_eq!(world.app.database.run(&sql).await, 1);
    let read = world.acme.get(&format!("/v1/{}", world.delivery)).await;
    assert_eq!((&read.body["event"], read.body.get("scan")), (&event, None));
    // Orders and filters by a Scan that is not there.
    let list = format!("/v1/{}/deliveries", world.connection);
    for query in [("filter", r#"scan = """#), ("orderBy", "scan")] {
        let listed = world.acme.get_with(&list, &[query]).await;
        assert_eq!(listed.body["deliveries"][0]["event"], event);
    }
    let again = world
        .post(&format!("{}:retry", world.delivery), &json!({}))
        .await;
    assert_eq!((again.status, &again.body["event"]), (200, &event));
}

#[tokio::test]
async fn deliveries_are_listed_and_one_is_shown_with_its_attempts() {
    let world = world().await;
    let one = world.acme.get(&format!("/v1/{}", world.delivery)).await;
    assert_eq!(one.status, 200, "{}", one.body);
    assert_eq!(one.body["attempts"][0]["phases"]["firstByteMs"], 20);
    assert_eq!(one.body["attempts"][0]["responseBody"], "busy");
    let mut plain = one.body.clone();
    plain.as_object_mut().unwrap().remove("attempts");
    for parent in [
        world.connection.clone(),
        format!("{}/connections/-", world.namespace),
    ] {
        let path = format!("/v1/{parent}/deliveries");
        let listed = world.acme.get(&path).await;
        assert_eq!(listed.body, json!({"deliveries": [plain]}), "{parent}");
        let query = [
            ("filter", "state = EXHAUSTED AND lastStatusCode >= 500"),
            ("orderBy", "attemptCount desc"),
        ];
        let listed = world.acme.get_with(&path, &query).await;
        assert_eq!(listed.body["deliveries"][0], plain);
        let listed = world
            .acme
            .get_with(&path, &[("filter", "state = LOST")])
            .await;
        assert_eq!(listed.details(), [("filter", "invalid_enum")]);
    }
    let unknown = format!(
        "/v1/{}/connections/{}/deliveries",
        world.namespace,
        Id::generate()
    );
    assert_eq!(world.acme.get(&unknown).await.status, 404);
    let any = format!(
        "/v1/{}/connections/-/deliveries/{}",
        world.namespace,
        Id::generate()
    );
    assert_eq!(world.acme.get(&any).await.status, 404, "`-` is for lists");
}

#[tokio::test]
async fn retry_reopens_an_exhausted_delivery() {
    let world = world().await;
    let path = format!("{}:retry", world.delivery);
    // The first request is in test mode, which changes nothing.
    let tried = world
        .acme
        .send(Method::POST, &format!("/v1/{path}"), |request| {
            request.header("x-test", "true")
        })
        .await;
    assert_eq!(tried.body["state"], "PENDING", "{}", tried.body);
    let found = world.acme.get(&format!("/v1/{}", world.delivery)).await;
    assert_eq!(found.body["state"], "EXHAUSTED");

    let retried = world.post(&path, &json!({})).await;
    assert_eq!(
        (retried.status, &retried.body["state"]),
        (200, &"PENDING".into())
    );
    assert!(retried.body["nextAttemptTime"].is_string());
    assert_eq!(
        world
            .app
            .database
            .count("deliveries WHERE urgent AND schedule_base = 1")
            .await,
        1
    );

    let viewer = world.app.key("acme", Role::Viewer, None).await;
    assert_eq!(
        viewer.post(&format!("/v1/{path}"), &json!({})).await.status,
        403
    );
    let unknown = format!("{}/deliveries/{}:retry", world.connection, Id::generate());
    assert_eq!(world.post(&unknown, &json!({})).await.status, 404);
    world.app.database.run("DELETE FROM scans").await;
    assert_eq!(
        world.post(&path, &json!({})).await.details(),
        [("scan", "not_found")]
    );
}

#[tokio::test]
async fn replay_can_be_created_read_and_cancelled() {
    let world = world().await;
    let path = format!("{}:replay", world.connection);
    let start = Timestamp::now()
        .minus(std::time::Duration::from_secs(60))
        .to_string();
    let made = world
        .post(&path, &json!({"startTime": start, "states": ["EXHAUSTED"]}))
        .await;
    assert_eq!(made.status, 200, "{}", made.body);
    assert_eq!(
        (&made.body["state"], &made.body["total"], &made.body["done"]),
        (&"RUNNING".into(), &1.into(), &0.into())
    );
    let name = made.body["name"].as_str().unwrap().to_owned();
    assert_eq!(world.acme.get(&format!("/v1/{name}")).await.body, made.body);
    let list = format!("/v1/{}/replays", world.connection);
    assert_eq!(
        world.acme.get(&list).await.body,
        json!({"replays": [made.body]})
    );

    let delete = async |client: &Client| client.delete(&format!("/v1/{name}")).await;
    let viewer = world.app.key("acme", Role::Viewer, None).await;
    assert_eq!(delete(&viewer).await.status, 403);
    for _ in 0..2 {
        let cancelled = delete(&world.acme).await;
        assert_eq!((cancelled.status, cancelled.body), (200, json!({})));
    }
    assert_eq!(
        world.acme.get(&format!("/v1/{name}")).await.body["state"],
        "CANCELLED"
    );

    for (body, expected) in [
        (json!({}), ("startTime", "required")),
        (
            json!({"startTime": start, "endTime": "2020-01-01T00:00:00Z"}),
            ("endTime", "out_of_range"),
        ),
        (
            json!({"startTime": start, "states": ["GONE"]}),
            ("states[0]", "invalid_enum"),
        ),
        (
            json!({"startTime": start, "colour": 1}),
            ("colour", "unknown_field"),
        ),
    ] {
        assert_eq!(
            world.post(&path, &body).await.details(),
            [expected],
            "{body}"
        );
    }
    let body = json!({"startTime": start});
    for _ in 0..10 {
        assert_eq!(world.post(&path, &body).await.status, 200);
    }
    assert_eq!(
        world.post(&path, &body).await.details(),
        [("replays", "too_many")]
    );
    let unknown = format!("{}/connections/{}:replay", world.namespace, Id::generate());
    assert_eq!(world.post(&unknown, &body).await.status, 404);
}

#[tokio::test]
async fn connection_test_without_a_dispatcher_fails_at_once() {
    let world = world().await;
    let answer = world
        .post(&format!("{}:test", world.connection), &json!({}))
        .await;
    let expected =
        json!({"ok": false, "sent": false, "latencyMs": 0, "error": "no dispatcher is running"});
    assert_eq!((answer.status, answer.body), (200, expected));
    assert_eq!(world.app.database.count("connection_tests").await, 0);
}

#[tokio::test]
async fn connection_test_returns_the_result_of_a_dispatcher() {
    let world = world().await;
    world.dispatcher_lives().await;
    let path = format!("{}:test", world.connection);
    let body = json!({});
    let asked = world.post(&path, &body);
    let answering = async {
        let result = json!({"ok": true, "sent": true, "statusCode": 204, "latencyMs": 12});
        let sql = format!(
            "UPDATE connection_tests SET taken_by = gen_random_uuid(), answer = '{result}'"
        );
        eventually("the test is asked for", async || {
            world.app.database.run(&sql).await > 0
        })
        .await;
        result
    };
    let (answer, expected) = tokio::join!(asked, answering);
    assert_eq!((answer.status, answer.body), (200, expected));
}

#[tokio::test]
async fn account_waits_for_few_connection_tests_at_a_time() {
    let world = world().await;
    world.dispatcher_lives().await;
    let connection: ConnectionName = world.connection.parse().unwrap();
    let mut conn = world.app.database.connect().await;
    for _ in 0..trial_deliveries::MAX_PER_ACCOUNT {
        let asked = trial_deliveries::request(&mut conn, connection).await;
        assert!(asked.unwrap().is_some());
    }
    let path = format!("{}:test", world.connection);
    let refused = world.post(&path, &json!({})).await;
    assert_eq!(refused.status, 429);
    assert_eq!(refused.headers["retry-after"], "1");
}

#[tokio::test]
async fn test_mode_checks_a_connection_and_sends_nothing() {
    let world = world().await;
    world.dispatcher_lives().await;
    let path = format!("/v1/{}:test", world.connection);
    let test = async || {
        world
            .acme
            .send(Method::POST, &path, |request| {
                request.header("x-test", "yes")
            })
            .await
    };
    let answer = test().await;
    assert_eq!(
        answer.body,
        json!({"ok": true, "sent": false, "latencyMs": 0})
    );
    world
        .app
        .database
        .run("UPDATE connections SET url = 'https://127.0.0.1/'")
        .await;
    let answer = test().await;
    assert_eq!(
        (&answer.body["ok"], &answer.body["sent"]),
        (&false.into(), &false.into())
    );
    world
        .app
        .database
        .run("UPDATE connections SET headers_sealed = 'nonsense'")
        .await;
    assert!(
        test().await.body["error"]
            .as_str()
            .unwrap()
            .contains("decrypted")
    );
    assert_eq!(world.app.database.count("connection_tests").await, 0);
}

/// Takes twelve seconds, the whole timeout.
#[tokio::test]
async fn connection_test_without_a_result_is_withdrawn() {
    let world = world().await;
    world.dispatcher_lives().await;
    let answer = world
        .post(&format!("{}:test", world.connection), &json!({}))
        .await;
    assert_eq!(answer.body["error"], "no dispatcher took the test in time");
    assert!(answer.body["latencyMs"].as_u64().unwrap() >= 12_000);
    assert_eq!(world.app.database.count("connection_tests").await, 0);
}

#[tokio::test]
async fn health_shows_waiting_deliveries_and_the_circuit_breaker() {
    let world = world().await;
    let run = async |sql: &str| world.app.database.run(sql).await;
    run("UPDATE deliveries SET state = 'RETRYING', next_attempt_time = now()").await;
    run("UPDATE connection_lanes SET recent_count = 20, recent_outcomes = 7, last_success_time = now(), \
         open_until = now() + interval '1 minute'")
    .await;
    let path = format!("/v1/{}", world.connection);
    let health = world.acme.get(&path).await.body["health"].clone();
    assert_eq!(
        (
            &health["successRate"],
            &health["pending"],
            &health["breaker"]
        ),
        (&json!(0.85), &json!(1), &json!("OPEN"))
    );
    assert!(health["lastSuccessTime"].is_string() && health["oldestPendingTime"].is_string());
    run("UPDATE connection_lanes SET open_until = now()").await;
    assert_eq!(
        world.acme.get(&path).await.body["health"]["breaker"],
        "HALF_OPEN"
    );
    let listed = world
        .acme
        .get(&format!("/v1/{}/connections", world.namespace))
        .await;
    assert_eq!(listed.body["connections"][0]["health"]["pending"], 1);
}

#[tokio::test]
async fn health_shows_why_a_digest_is_set_aside_until_it_is_tried_again() {
    let world = world().await;
    let run = async |sql: &str| world.app.database.run(sql).await;
    let path = format!("/v1/{}", world.connection);
    run("INSERT INTO leases (kind, key, error, next_time) \
         SELECT 'digest', id::text, 'a reason', now() + interval '1 day' FROM connections")
    .await;
    let health = world.acme.get(&path).await.body["health"].clone();
    assert_eq!(health["digestError"], "a reason");
    run("UPDATE leases SET next_time = now()").await;
    let health = world.acme.get(&path).await.body["health"].clone();
    assert_eq!(health.get("digestError"), None);
}
