use std::time::Duration;

use diesel_async::SimpleAsyncConnection;
use domain::{
    Timestamp,
    key::{ApiKey, Role},
};
use reqwest::Method;
use store::keys::{self, NewKey};
use test_support::eventually;

use crate::{
    app::{TestApp, config, serve},
    client::Client,
};

#[tokio::test]
async fn only_the_exact_key_is_valid() {
    let app = TestApp::start().await;
    let key = ApiKey::generate();
    app.store_key("acme", &key, Role::Owner, None, None).await;
    let text = key.expose();
    let stranger = ApiKey::generate();
    let forged = ApiKey::from_parts(key.id, [1; 32]).expose();
    for (value, status) in [
        (format!("Bearer {text}"), 200),
        (format!("bearer {text}"), 200),
        (format!("BEARER   {text}"), 200),
        (text.clone(), 401),
        (format!("Basic {text}"), 401),
        (format!("Bearer {text}x"), 401),
        (format!("Bearer {}", &text[..70]), 401),
        (format!("Bearer {}", text.to_uppercase()), 401),
        (format!("Bearer {forged}"), 401),
        (format!("Bearer {}", stranger.expose()), 401),
        ("Bearer".to_owned(), 401),
        (String::new(), 401),
    ] {
        let answer = app
            .stranger()
            .send(Method::GET, "/v1/namespaces", |request| {
                request.header("authorization", &value)
            })
            .await;
        assert_eq!(answer.status, status, "{value}");
        if status == 401 {
            assert_eq!(answer.headers["www-authenticate"], "Bearer", "{value}");
        }
    }
}

#[tokio::test]
async fn revoked_key_is_refused_by_every_replica_that_cached_it() {
    let app = TestApp::start().await;
    let (other, _shutdown) = serve(&config(app.database.url()));
    let key = ApiKey::generate();
    app.store_key("acme", &key, Role::Owner, None, None).await;
    let clients = [&app.base, &other].map(|base| Client::new(base, Some(key.expose())));
    for client in &clients {
        assert_eq!(client.get("/v1/namespaces").await.status, 200);
    }

    let mut conn = app.database.connect().await;
    keys::revoke(&mut conn, key.id, Timestamp::now())
        .await
        .unwrap();
    for client in &clients {
        eventually("the key is refused", async || {
            client.get("/v1/namespaces").await.status != 200
        })
        .await;
        assert_eq!(client.get("/v1/namespaces").await.status, 401);
    }
}

#[tokio::test]
async fn cached_key_expires_on_time() {
    let app = TestApp::start().await;
    // On a busy machine, a short life may end before the first request.
    for life in [4, 20, 60].map(Duration::from_secs) {
        let key = ApiKey::generate();
        let end = Timestamp::now().plus(life);
        app.store_key("acme", &key, Role::Owner, None, Some(end))
            .await;
        let client = Client::new(&app.base, Some(key.expose()));
        let status = client.get("/v1/namespaces").await.status;
        if status == 401 && Timestamp::now() >= end {
            continue;
        }
        assert_eq!(status, 200);
        eventually("the key expires", async || {
            let is_over = Timestamp::now() >= end;
            let status = client.get("/v1/namespaces").await.status;
            // A request that began after the end is refused, and none before it.
            assert!(if is_over {
                status == 401
            } else {
                status == 200 || Timestamp::now() >= end
            });
            is_over
        })
        .await;
        return;
    }
    panic!("no request was made in time");
}

#[tokio::test]
async fn both_keys_of_a_rotation_work_until_the_old_one_expires() {
    let app = TestApp::start().await;
    let (old, new) = (ApiKey::generate(), ApiKey::generate());
    app.store_key("acme", &old, Role::Owner, None, None).await;
    let [before, after] = [&old, &new].map(|key| Client::new(&app.base, Some(key.expose())));
    assert_eq!(before.get("/v1/caller").await.status, 200);
    assert_eq!(after.get("/v1/caller").await.status, 401);

    let mut conn = app.database.connect().await;
    let now = Timestamp::now();
    let grace_end = now.plus(Duration::from_hours(1));
    keys::rotate(&mut conn, old.id, &new, grace_end, now)
        .await
        .unwrap();
    for client in [&before, &after] {
        assert_eq!(client.get("/v1/caller").await.status, 200);
    }

    app.database
        .run("UPDATE api_keys SET expire_time = now() WHERE replaced_by IS NOT NULL")
        .await;
    eventually("the old key is refused", async || {
        before.get("/v1/caller").await.status == 401
    })
    .await;
    assert_eq!(after.get("/v1/caller").await.status, 200);
}

#[tokio::test]
async fn key_works_from_its_networks_only() {
    let app = TestApp::start_with(|config| {
        config.gateway.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    })
    .await;
    let key = ApiKey::generate();
    let networks = ["198.51.100.0/24".parse().unwrap()];
    app.store_limited_key("acme", |account| NewKey {
        networks: Some(&networks),
        ..NewKey::new(account, &key, Role::Owner)
    })
    .await;
    let client = Client::new(&app.base, Some(key.expose()));
    for (path, place, status) in [
        ("/v1/namespaces", Some("198.51.100.7"), 200),
        ("/v1/namespaces", Some("203.0.113.7, 198.51.100.7"), 200),
        ("/v1/namespaces", Some("198.51.100.7, 203.0.113.7"), 403),
        ("/v1/caller", Some("203.0.113.7"), 403),
        ("/v1/nothing", Some("203.0.113.7"), 403),
        ("/v1/caller", None, 403),
    ] {
        let shape = |request: reqwest::RequestBuilder| match place {
            Some(place) => request.header("x-forwarded-for", place),
            None => request,
        };
        let answer = client.send(Method::GET, path, shape).await;
        assert_eq!(answer.status, status, "{path} from {place:?}");
        if status == 403 {
            let message = &answer.body["message"];
            assert_eq!(message, "api key not permitted from this address");
        }
    }
    let metrics = prometheus::default_registry().gather();
    let text = prometheus::TextEncoder::new().encode_to_string(&metrics);
    let counted = "earshot_failed_keys_total{outcome=\"network\"} ";
    assert!(text.unwrap().contains(counted));
}

#[tokio::test]
async fn changed_networks_of_a_key_count_on_every_replica_that_cached_it() {
    let app = TestApp::start().await;
    let (other, _shutdown) = serve(&config(app.database.url()));
    let key = ApiKey::generate();
    app.store_key("acme", &key, Role::Owner, None, None).await;
    let clients = [&app.base, &other].map(|base| Client::new(base, Some(key.expose())));
    let mut conn = app.database.connect().await;
    let elsewhere = ["2001:db8::/32".parse().unwrap()];
    let here = ["127.0.0.0/8".parse().unwrap()];
    for (networks, status) in [(&here, 200), (&elsewhere, 403), (&here, 200)] {
        keys::set_networks(&mut conn, key.id, Some(networks))
            .await
            .unwrap();
        for client in &clients {
            eventually("the networks count", async || {
                client.get("/v1/caller").await.status == status
            })
            .await;
        }
    }
}

#[tokio::test]
async fn only_an_admitted_request_counts_as_the_last_use_of_its_key() {
    let app = TestApp::start().await;
    let (key, unused) = (ApiKey::generate(), ApiKey::generate());
    let networks = ["198.51.100.0/24".parse().unwrap()];
    app.store_key("acme", &key, Role::Viewer, None, None).await;
    app.store_limited_key("acme", |account| NewKey {
        networks: Some(&networks),
        ..NewKey::new(account, &unused, Role::Owner)
    })
    .await;
    let before = Timestamp::now();
    let forged = ApiKey::from_parts(unused.id, [1; 32]);
    for (key, status) in [(&key, 200), (&unused, 403), (&forged, 401)] {
        let client = Client::new(&app.base, Some(key.expose()));
        for _ in 0..2 {
            assert_eq!(client.get("/v1/caller").await.status, status);
        }
    }
    let mut conn = app.database.connect().await;
    let mut last_use = None;
    eventually("the use is stored", async || {
        let used = keys::find(&mut conn, key.id).await.unwrap().unwrap();
        last_use = used.last_use_time;
        last_use.is_some()
    })
    .await;
    assert!(last_use.is_some_and(|time| time >= before));
    let unused = keys::find(&mut conn, unused.id).await.unwrap().unwrap();
    assert_eq!(unused.last_use_time, None);
}

#[tokio::test]
async fn use_right_before_a_stop_is_stored() {
    let mut app = TestApp::start().await;
    let key = ApiKey::generate();
    app.store_key("acme", &key, Role::Viewer, None, None).await;
    let client = Client::new(&app.base, Some(key.expose()));
    assert_eq!(client.get("/v1/caller").await.status, 200);
    app.stop();
    app.stopped().await.unwrap();
    let mut conn = app.database.connect().await;
    let used = keys::find(&mut conn, key.id).await.unwrap().unwrap();
    assert!(used.last_use_time.is_some());
}

#[tokio::test]
async fn request_does_not_wait_until_its_use_is_stored() {
    let app = TestApp::start().await;
    let key = ApiKey::generate();
    app.store_key("acme", &key, Role::Viewer, None, None).await;
    // `earshot keys rotate` hangs in its transaction.
    let mut operator = app.database.connect().await;
    operator.batch_execute("BEGIN").await.unwrap();
    keys::lock(&mut operator, key.id).await.unwrap();
    let client = Client::new(&app.base, Some(key.expose()));
    assert_eq!(client.get("/v1/caller").await.status, 200);
    // The use of another key is stored meanwhile.
    let other = ApiKey::generate();
    app.store_key("acme", &other, Role::Viewer, None, None)
        .await;
    let others = Client::new(&app.base, Some(other.expose()));
    assert_eq!(others.get("/v1/caller").await.status, 200);
    let mut conn = app.database.connect().await;
    eventually("the use of another key is stored", async || {
        let used = keys::find(&mut conn, other.id).await.unwrap().unwrap();
        used.last_use_time.is_some()
    })
    .await;
    operator.batch_execute("ROLLBACK").await.unwrap();
    eventually("a later use is stored", async || {
        assert_eq!(client.get("/v1/caller").await.status, 200);
        let used = keys::find(&mut conn, key.id).await.unwrap().unwrap();
        used.last_use_time.is_some()
    })
    .await;
}
