//! Lost databases, lost brokers, and ports in use.

use diesel_async::SimpleAsyncConnection;
use domain::key::ApiKey;
use serde_json::json;

use crate::{
    app::{TestApp, config, serve},
    client::Client,
};

#[tokio::test]
async fn requests_without_a_database_get_503_with_retry_after() {
    let away = private_port();
    let (base, _shutdown) = serve(&config(&format!(
        "postgres://earshot@127.0.0.1:{away}/earshot"
    )));
    let client = Client::new(&base, Some(ApiKey::generate().expose()));
    for path in ["/v1/namespaces", "/v1/nowhere"] {
        let answer = client.get(path).await;
        assert_eq!(answer.status, 503, "{path}");
        assert_eq!(answer.headers["retry-after"], "1");
        assert_eq!(
            answer.body,
            json!({"code": 503, "message": "service temporarily unavailable"})
        );
    }
    // Endpoints that need no database still answer.
    assert_eq!(client.get("/openapi.json").await.status, 200);
    assert_eq!(
        Client::new(&base, None).get("/v1/namespaces").await.status,
        401
    );
}

#[tokio::test]
async fn database_is_used_again_when_it_is_back() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let mut conn = app.database.connect().await;
    conn.batch_execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    .await
    .unwrap();
    // The pool's connections are dead now; each may fail one request.
    let mut status = 0;
    for _ in 0..20 {
        let answer = acme.get(&format!("/v1/{namespace}")).await;
        status = answer.status;
        assert!([200, 503].contains(&status), "{}", answer.body);
    }
    assert_eq!(status, 200);
}

#[tokio::test]
async fn a_lock_that_is_not_free_in_time_is_503_in_any_language() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    for statement in [
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         RAISE 'storniere Anfrage wegen Sperre' USING ERRCODE = '55P03'; END $$",
        "CREATE TRIGGER wait BEFORE UPDATE ON namespaces FOR EACH ROW EXECUTE FUNCTION wait()",
    ] {
        app.database.run(statement).await;
    }
    let path = format!("/v1/{namespace}");
    let answer = acme.patch(&path, &json!({"nickname": "other"})).await;
    assert_eq!(answer.status, 503, "{}", answer.body);
}

#[test]
fn error_names_an_address_in_use() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = runtime::Config::dev();
    config.gateway.listen = taken.local_addr().unwrap();
    let error = anyhow::Error::from(api_gateway::listen(&config).unwrap_err());
    let expected = format!("gateway.listen: cannot listen on {}", config.gateway.listen);
    assert_eq!(error.to_string(), expected);
    assert!(format!("{error:#}").contains("in use"), "{error:#}");
}

/// A port on which nothing listens.
fn private_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
