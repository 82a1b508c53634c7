use std::time::{Duration, Instant};

use domain::{
    Timestamp,
    key::{ApiKey, Role},
};
use reqwest::Method;
use store::keys;

use crate::{
    app::{TestApp, config, serve},
    client::Client,
};

#[tokio::test]
async fn only_the_whole_key_works() {
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
    }
}

#[tokio::test]
async fn an_expired_key_does_not_work() {
    let app = TestApp::start().await;
    let key = ApiKey::generate();
    let past = Timestamp::now().minus(Duration::from_secs(1));
    app.store_key("acme", &key, Role::Owner, None, Some(past))
        .await;
    let client = Client::new(&app.base, Some(key.expose()));
    assert_eq!(client.get("/v1/namespaces").await.status, 401);
}

#[tokio::test]
async fn revocation_works_within_five_seconds_on_every_replica() {
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
    let revoked = Instant::now();
    for client in &clients {
        while client.get("/v1/namespaces").await.status == 200 {
            assert!(revoked.elapsed() < Duration::from_secs(5));
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        assert_eq!(client.get("/v1/namespaces").await.status, 401);
    }
}

#[tokio::test]
async fn a_key_that_is_believed_still_expires_on_time() {
    let app = TestApp::start().await;
    let key = ApiKey::generate();
    let soon = Timestamp::now().plus(Duration::from_secs(1));
    app.store_key("acme", &key, Role::Owner, None, Some(soon))
        .await;
    let client = Client::new(&app.base, Some(key.expose()));
    assert_eq!(client.get("/v1/namespaces").await.status, 200);
    tokio::time::sleep(Duration::from_millis(1_050)).await;
    assert_eq!(client.get("/v1/namespaces").await.status, 401);
}
