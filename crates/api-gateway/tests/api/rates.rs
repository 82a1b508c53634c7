//! The rate limit of the gateway. The simulation shows that the limit holds in every window of a minute; these
//! tests show that one gateway and two gateways behave like the simulation.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use reqwest::Method;
use serde_json::json;
use store::quotas::{self, Change};
use test_support::eventually;

use crate::{
    app::{TestApp, config, serve},
    client::{Answer, Client},
    contract,
};

/// A request that costs 20 points.
async fn costly(client: &Client) -> Answer {
    client
        .post("/v1/namespaces/x/connections/y:test", &json!({}))
        .await
}

/// Limit and remaining points from the headers.
fn points(answer: &Answer) -> (i64, i64) {
    let [limit, remaining] = ["x-ratelimit-limit", "x-ratelimit-remaining"];
    (answer.number(limit), answer.number(remaining))
}

async fn limit_account(app: &TestApp, limit: Option<u32>) {
    let change = Change {
        rate_limit_per_minute: Some(limit),
        ..Change::default()
    };
    let mut conn = app.database.connect().await;
    let set = quotas::set(&mut conn, "acme", &change).await.unwrap();
    assert!(set.is_some());
}

/// Maximum number of points since `begin`: the limit for each minute, because a slow machine may need several
/// minutes.
fn most(limit: u32, begin: Instant) -> u32 {
    let minutes = begin.elapsed().as_secs() / 60 + 1;
    limit * u32::try_from(minutes).unwrap()
}

fn now() -> i64 {
    domain::Timestamp::now().to_chrono().timestamp()
}

#[tokio::test]
async fn request_does_not_wait_for_a_database_that_cannot_write() {
    let app = TestApp::start().await;
    let client = app.account("acme").await;
    for statement in [
        "CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN PERFORM pg_sleep(25); RETURN NULL; END $$",
        "CREATE TRIGGER hang AFTER INSERT OR UPDATE ON rate_ledgers EXECUTE FUNCTION hang()",
    ] {
        app.database.run(statement).await;
    }
    let answer = client.get("/v1/namespaces").await;
    assert_eq!(answer.status, 503);
    assert!(answer.headers.contains_key("retry-after"));
    let hanging = "pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
    assert_eq!(app.database.count(hanging).await, 1, "it still hangs");
}

#[tokio::test]
async fn two_gateways_share_the_limit_of_a_key() {
    const LIMIT: u32 = 600;
    let limited = |config: &mut runtime::Config| config.gateway.rate_limit_per_minute = LIMIT;
    let app = TestApp::start_with(limited).await;
    let mut second = config(app.database.url());
    limited(&mut second);
    let (other, _shutdown) = serve(&second);
    let key = app.owner_key("acme").await;

    let through = Arc::new(AtomicU32::new(0));
    let refused = Arc::new(AtomicU32::new(0));
    let begin = Instant::now();
    let clients = [&app.base, &other, &app.base, &other].map(|base| {
        let client = Client::new(base, Some(key.clone()));
        let (through, refused) = (Arc::clone(&through), Arc::clone(&refused));
        async move {
            // Long after the last point was spent.
            while refused.load(Ordering::Relaxed) < 400 {
                let answer = client.get("/v1/namespaces").await;
                assert_eq!(answer.number("x-ratelimit-limit"), 600);
                let left = answer.number("x-ratelimit-remaining");
                assert!((0..600).contains(&left), "{left}");
                let reset = answer.number("x-ratelimit-reset") - now();
                assert!((1..=67).contains(&reset), "{reset}");
                if answer.status == 200 {
                    through.fetch_add(1, Ordering::Relaxed);
                } else {
                    assert_eq!(answer.status, 429);
                    let expected = json!({"code": 429, "message": "rate limit exceeded"});
                    assert_eq!(answer.body, expected);
                    let wait = answer.number("retry-after");
                    assert!((1..=66).contains(&wait), "{wait}");
                    refused.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    });
    futures::future::join_all(clients).await;
    let through = through.load(Ordering::Relaxed);
    assert!(through <= most(LIMIT, begin), "{through}");
    assert!(through >= LIMIT * 95 / 100, "{through}");
}

#[tokio::test]
async fn requests_cost_their_points_and_report_the_rest() {
    let app = TestApp::start_with(|config| config.gateway.rate_limit_per_minute = 100).await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let answer = acme.get(&format!("/v1/{namespace}")).await;
    assert_eq!(answer.number("x-ratelimit-remaining"), 94);
    // Requests cost points regardless of their outcome.
    for (method, path, status, left) in [
        (Method::GET, "/v1/nowhere", 404, 93),
        (Method::GET, "/v1/namespaces?x=y", 400, 92),
        (Method::PUT, "/v1/namespaces", 405, 87),
        (Method::POST, "/v1/namespaces/x/managers", 404, 82),
        (Method::POST, "/v1/namespaces/x/connections/y:test", 404, 62),
        (
            Method::POST,
            "/v1/namespaces/x/connections/y%3Atest",
            404,
            42,
        ),
        (Method::HEAD, "/v1/namespaces", 200, 41),
    ] {
        let answer = acme.send(method.clone(), path, |request| request).await;
        assert_eq!(answer.status, status, "{method} {path}");
        for name in contract::RATE_HEADERS {
            assert!(answer.headers.contains_key(name), "{method} {path}: {name}");
        }
        assert_eq!(
            answer.number("x-ratelimit-remaining"),
            left,
            "{method} {path}"
        );
    }
    // Points of others are not affected, and requests without a key have none.
    let other = app.account("acme").await;
    let answer = other.get("/v1/namespaces").await;
    assert_eq!(answer.number("x-ratelimit-remaining"), 99);
    let answer = app.stranger().get("/v1/namespaces").await;
    assert!(!answer.headers.contains_key("x-ratelimit-limit"));
}

#[tokio::test]
async fn exhausted_key_gets_429_before_any_other_check() {
    let app = TestApp::start_with(|config| config.gateway.rate_limit_per_minute = 5).await;
    let acme = app.account("acme").await;
    assert_eq!(
        acme.post("/v1/namespaces", &json!({"nickname": "x"}))
            .await
            .status,
        201
    );
    for path in ["/v1/namespaces", "/v1/nowhere"] {
        let answer = acme.get(path).await;
        assert_eq!(answer.status, 429, "{path}");
        assert_eq!(answer.number("x-ratelimit-remaining"), 0);
    }
    assert_eq!(app.stranger().get("/v1/namespaces").await.status, 401);
    // A request that costs more than the limit takes the whole limit.
    let other = app.account("acme").await;
    let answer = other
        .post("/v1/namespaces/x/connections/y:test", &json!({}))
        .await;
    assert_eq!(answer.status, 404);
}

#[tokio::test]
async fn spent_points_survive_their_gateway() {
    let limited = |config: &mut runtime::Config| config.gateway.rate_limit_per_minute = 200;
    let mut app = TestApp::start_with(limited).await;
    let key = app.owner_key("acme").await;
    let first = Client::new(&app.base, Some(key.clone()));
    for _ in 0..9 {
        assert_eq!(first.get("/v1/namespaces").await.status, 200);
    }
    app.stop();
    app.stopped().await.unwrap();
    let mut config = config(app.database.url());
    limited(&mut config);
    let (base, _shutdown) = serve(&config);
    // Spent points stay spent, and unspent points of the lease come back.
    let answer = Client::new(&base, Some(key)).get("/v1/namespaces").await;
    assert_eq!(answer.number("x-ratelimit-remaining"), 190);
}

#[tokio::test]
async fn unused_lease_is_returned() {
    let limited = |config: &mut runtime::Config| config.gateway.rate_limit_per_minute = 200;
    let app = TestApp::start_with(limited).await;
    let mut second = config(app.database.url());
    limited(&mut second);
    let (other, _shutdown) = serve(&second);
    let key = app.owner_key("acme").await;
    Client::new(&app.base, Some(key.clone()))
        .get("/v1/namespaces")
        .await;
    let other = Client::new(&other, Some(key));
    let mut spent = 1;
    eventually("points come back", async || {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let answer = other.get("/v1/namespaces").await;
        spent += 1;
        answer.number("x-ratelimit-remaining") == 200 - spent
    })
    .await;
}

#[tokio::test]
async fn keys_share_the_limit_of_their_account_only() {
    let app = TestApp::start_with(|config| {
        config.gateway.rate_limit_per_minute = 100;
        config.gateway.account_rate_limit_per_minute = Some(30);
    })
    .await;
    let (one, two) = (app.account("acme").await, app.account("acme").await);
    let answer = costly(&one).await;
    assert_eq!((answer.status, points(&answer)), (404, (30, 10)));

    // Refused twice, the second time without a query.
    for _ in 0..2 {
        let answer = costly(&two).await;
        assert_eq!((answer.status, points(&answer)), (429, (30, 10)));
        assert!((1..=66).contains(&answer.number("retry-after")));
        let expected = json!({"code": 429, "message": "rate limit exceeded"});
        assert_eq!(answer.body, expected);
    }
    // The refusals cost the account nothing.
    let answer = two.get("/v1/namespaces").await;
    assert_eq!((answer.status, points(&answer)), (200, (30, 9)));
    let answer = one.get("/v1/namespaces").await;
    assert_eq!((answer.status, points(&answer)), (200, (30, 8)));
    let answer = app.account("globex").await.get("/v1/namespaces").await;
    assert_eq!((answer.status, points(&answer)), (200, (30, 29)));

    // Nor did they cost the key anything. With a higher limit of the account, the key's own limit is the lower one.
    limit_account(&app, Some(1_000)).await;
    let answer = two.get("/v1/caller").await;
    assert_eq!(points(&answer), (100, 98));
    let limits = ["rateLimitPerMinute", "accountRateLimitPerMinute"];
    assert_eq!(
        limits.map(|limit| answer.body[limit].as_u64()),
        [Some(100), Some(1_000)]
    );
    limit_account(&app, None).await;
    let answer = one.get("/v1/caller").await;
    assert_eq!(answer.body["accountRateLimitPerMinute"], 30);
}

#[tokio::test]
async fn request_refused_by_the_limit_of_a_key_costs_its_account_nothing() {
    let app = TestApp::start_with(|config| {
        config.gateway.rate_limit_per_minute = 25;
        config.gateway.account_rate_limit_per_minute = Some(30);
    })
    .await;
    let (one, two) = (app.account("acme").await, app.account("acme").await);
    assert_eq!(points(&costly(&one).await), (25, 5));
    let refused = costly(&one).await;
    assert_eq!((refused.status, points(&refused)), (429, (25, 5)));
    let answer = two.get("/v1/namespaces").await;
    assert_eq!((answer.status, points(&answer)), (200, (30, 9)));
}

#[tokio::test]
async fn request_above_the_limit_of_its_account_takes_the_whole_limit() {
    let app = TestApp::start_with(|config| config.gateway.rate_limit_per_minute = 100).await;
    let acme = app.account("acme").await;
    limit_account(&app, Some(3)).await;
    let answer = costly(&acme).await;
    assert_eq!((answer.status, points(&answer)), (404, (3, 0)));
    let answer = acme.get("/v1/namespaces").await;
    assert_eq!((answer.status, points(&answer)), (429, (3, 0)));
}

#[tokio::test]
async fn two_gateways_share_the_limit_of_an_account() {
    const LIMIT: u32 = 200;
    let limited = |config: &mut runtime::Config| {
        config.gateway.rate_limit_per_minute = 1_000;
        config.gateway.account_rate_limit_per_minute = Some(LIMIT);
    };
    let app = TestApp::start_with(limited).await;
    let mut second = config(app.database.url());
    limited(&mut second);
    let (other, _shutdown) = serve(&second);
    let keys = [app.owner_key("acme").await, app.owner_key("acme").await];
    let through = AtomicU32::new(0);
    let begin = Instant::now();
    let clients = (0..4).map(|n| {
        let base = if n < 2 { &app.base } else { &other };
        let client = Client::new(base, Some(keys[n % 2].clone()));
        let through = &through;
        async move {
            let mut refused = 0;
            while refused < 50 {
                let answer = client.get("/v1/namespaces").await;
                if answer.status == 200 {
                    through.fetch_add(1, Ordering::Relaxed);
                } else {
                    assert_eq!(answer.status, 429);
                    assert_eq!(answer.number("x-ratelimit-limit"), i64::from(LIMIT));
                    refused += 1;
                }
            }
        }
    });
    futures::future::join_all(clients).await;
    let through = through.into_inner();
    assert!(through <= most(LIMIT, begin), "{through}");
    assert!(through >= LIMIT * 9 / 10, "{through}");
}
