use std::time::Duration;

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
    let used = keys::find(&mut conn, key.id).await.unwrap().unwrap();
    assert!(used.last_use_time.is_some_and(|time| time >= before));
    let unused = keys::find(&mut conn, unused.id).await.unwrap().unwrap();
    assert_eq!(unused.last_use_time, None);
}
