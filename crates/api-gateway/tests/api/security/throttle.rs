//! Invalid keys: all get the same response, and repeated attempts are throttled.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use domain::{
    Timestamp,
    key::{ApiKey, Role},
};
use serde_json::{Value, json};

use crate::{app::TestApp, client::Client};

const BURST: usize = 20;

/// Client that sends from one loopback address.
struct Place {
    http: reqwest::Client,
    url: String,
}

impl Place {
    fn address(app: &TestApp, last: u8) -> Self {
        runtime::crypto::install();
        let address = IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
        let http = reqwest::Client::builder().local_address(address);
        Self {
            http: http.build().unwrap(),
            url: format!("{}/v1/caller", app.base),
        }
    }

    async fn get(&self, key: &str, forwarded: Option<&str>) -> reqwest::Response {
        let mut request = self.http.get(&self.url).bearer_auth(key);
        if let Some(forwarded) = forwarded {
            request = request.header("x-forwarded-for", forwarded);
        }
        request.send().await.unwrap()
    }

    async fn status(&self, key: &str) -> u16 {
        self.get(key, None).await.status().as_u16()
    }

    /// Sends this many requests with unknown keys in a row, and returns the statuses.
    async fn guess(&self, times: usize, forwarded: Option<&str>) -> Vec<u16> {
        let mut statuses = Vec::new();
        for _ in 0..times {
            let key = ApiKey::generate().expose();
            statuses.push(self.get(&key, forwarded).await.status().as_u16());
        }
        statuses
    }
}

#[tokio::test]
async fn only_the_guessing_address_is_throttled() {
    let app = TestApp::start().await;
    let (known, new) = (app.owner_key("acme").await, app.owner_key("acme").await);
    let (guesser, neighbour) = (Place::address(&app, 2), Place::address(&app, 3));
    assert_eq!(guesser.status(&known).await, 200);

    let statuses = guesser.guess(3 * BURST, None).await;
    assert_eq!(statuses[..BURST], [401; BURST]);
    let throttled = statuses.iter().filter(|status| **status == 429).count();
    // One attempt per second is allowed, and the machine may be slow.
    assert!(throttled > 0, "{statuses:?}");

    let mut refused = None;
    for _ in 0..50 {
        let answer = guesser.get(&ApiKey::generate().expose(), None).await;
        if answer.status() == 429 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.unwrap();
    let number = |name: &str| -> i64 { refused.headers()[name].to_str().unwrap().parse().unwrap() };
    assert!((1..=20).contains(&number("retry-after")));
    assert_eq!(number("x-ratelimit-remaining"), 0);
    assert!(number("x-ratelimit-reset") >= Timestamp::now().to_chrono().timestamp());
    let body: Value = refused.json().await.unwrap();
    assert_eq!(body, json!({"code": 429, "message": "rate limit exceeded"}));

    // A key that has worked keeps working, although it must be looked up again. Other addresses are not affected.
    tokio::time::sleep(Duration::from_millis(3_100)).await;
    guesser.guess(2 * BURST, None).await;
    assert_eq!(guesser.status(&known).await, 200);
    assert_eq!(neighbour.status(&new).await, 200);
    // Neither are keys that are new to this replica, in the middle of it.
    for _ in 0..3 {
        guesser.guess(15 * BURST, None).await;
        let newer = app.owner_key("acme").await;
        assert_eq!(guesser.status(&newer).await, 200);
    }
    // A key that differs in one character is not valid.
    let near = ApiKey::from_parts(known.parse::<ApiKey>().unwrap().id, [1; 32]).expose();
    assert_ne!(guesser.status(&near).await, 200);
}

#[tokio::test]
async fn requests_without_a_key_are_not_throttled() {
    let app = TestApp::start().await;
    for _ in 0..2 * BURST {
        assert_eq!(app.stranger().get("/v1/caller").await.status, 401);
        let malformed = Client::new(&app.base, Some("esk_nonsense".to_owned()));
        assert_eq!(malformed.get("/v1/caller").await.status, 401);
    }
    let new = Client::new(&app.base, Some(app.owner_key("acme").await));
    assert_eq!(new.get("/v1/caller").await.status, 200);
}

#[tokio::test]
async fn clients_behind_a_trusted_proxy_are_throttled_separately() {
    let app = TestApp::start_with(|config| {
        config.gateway.trusted_proxies = vec!["127.0.0.4/32".parse().unwrap()];
    })
    .await;
    let (proxy, stranger) = (Place::address(&app, 4), Place::address(&app, 5));
    let statuses = proxy
        .guess(3 * BURST, Some("203.0.113.9, 198.51.100.7"))
        .await;
    assert!(statuses.contains(&429), "{statuses:?}");
    // Addresses that the client wrote into the header itself change nothing, and its neighbour is not delayed.
    let statuses = proxy
        .guess(BURST, Some("203.0.113.250, 198.51.100.7"))
        .await;
    assert!(statuses.contains(&429), "{statuses:?}");
    assert_eq!(proxy.guess(3, Some("198.51.100.8")).await, [401; 3]);
    // A client that is not a trusted proxy counts by its own address.
    let mut statuses = Vec::new();
    for n in 0..3 * BURST {
        statuses.extend(stranger.guess(1, Some(&format!("198.51.101.{n}"))).await);
    }
    assert!(statuses.contains(&429), "{statuses:?}");
}

#[tokio::test]
async fn all_invalid_keys_get_the_same_response() {
    let app = TestApp::start().await;
    let (good, expired, revoked) = (ApiKey::generate(), ApiKey::generate(), ApiKey::generate());
    let now = Timestamp::now();
    app.store_key("acme", &good, Role::Owner, None, None).await;
    let past = Some(now.minus(Duration::from_secs(1)));
    app.store_key("acme", &expired, Role::Owner, None, past)
        .await;
    app.store_key("acme", &revoked, Role::Owner, None, None)
        .await;
    let mut conn = app.database.connect().await;
    store::keys::revoke(&mut conn, revoked.id, now)
        .await
        .unwrap();
    let mut told = Vec::new();
    for key in [
        ApiKey::generate().expose(),
        ApiKey::from_parts(good.id, [1; 32]).expose(),
        expired.expose(),
        revoked.expose(),
        "esk_nonsense".to_owned(),
    ] {
        let answer = Client::new(&app.base, Some(key)).get("/v1/nowhere").await;
        let mut names: Vec<String> = answer
            .headers
            .keys()
            .map(|name| name.as_str().to_owned())
            .collect();
        names.sort();
        told.push((answer.status, answer.body.to_string(), names));
    }
    assert_eq!(told[0].0, 401);
    assert!(told.iter().all(|one| *one == told[0]), "{told:#?}");
    let metrics = prometheus::default_registry().gather();
    let counted = metrics
        .iter()
        .any(|family| family.name() == "earshot_failed_keys_total");
    assert!(counted, "failed keys are not counted");
}
