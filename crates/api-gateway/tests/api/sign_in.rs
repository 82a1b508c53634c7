//! `/console/sign-in`: people sign in by OpenID Connect.

use std::{
    net::Ipv4Addr,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use domain::{
    Timestamp,
    key::{ApiKey, Role},
};
use reqwest::{Method, Response, redirect};
use runtime::config::{Grant, Oidc};
use secrecy::SecretString;
use serde_json::{Value, json};
use store::{
    keys::{self, SessionFilter},
    roles::Service,
};
use test_support::eventually;

use crate::{
    app::{TestApp, config, serve},
    client::Client,
    provider::{CLIENT_ID, CLIENT_SECRET, Provider},
};

/// Origin of the console, which differs from the test's address as behind a proxy.
const ORIGIN: &str = "https://earshot.example.com";
const DONE: &str = "../#/sign-in?done=true";

fn oidc(provider: &Provider) -> Oidc {
    let grant = |group: &str, account: &str, role| Grant {
        group: group.to_owned(),
        account: account.to_owned(),
        role,
    };
    Oidc {
        issuer: provider.issuer(),
        client_id: CLIENT_ID.to_owned(),
        client_secret: Some(SecretString::from(CLIENT_SECRET)),
        console_url: format!("{ORIGIN}/console/").parse().unwrap(),
        name: "Acme".to_owned(),
        scopes: vec!["openid".to_owned(), "email".to_owned()],
        groups_claim: "groups".to_owned(),
        grants: vec![
            grant("admins", "acme", Role::Owner),
            grant("staff", "acme", Role::Editor),
            grant("guests", "globex", Role::Viewer),
            grant("ghosts", "nobody", Role::Viewer),
        ],
        session_length: Duration::from_secs(3_600),
    }
}

/// A gateway whose people sign in at `provider`, with the accounts `acme` and `globex`.
async fn start(provider: &Provider) -> (TestApp, Client, Client) {
    let settings = oidc(provider);
    let app = TestApp::start_with(|config| {
        config.gateway.oidc = Some(settings);
        config.gateway.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let (acme, globex) = (app.account("acme").await, app.account("globex").await);
    (app, acme, globex)
}

/// A browser with at most one cookie.
struct Browser {
    http: reqwest::Client,
    base: String,
    cookie: Option<String>,
    /// `None` for another address with each request, so that none is throttled.
    address: Option<Ipv4Addr>,
}

fn new_address() -> Ipv4Addr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 0).to_bits() + number)
}

impl Browser {
    fn new(base: &str) -> Self {
        runtime::crypto::install();
        let http = reqwest::Client::builder().redirect(redirect::Policy::none());
        Self {
            http: http.build().unwrap(),
            base: base.to_owned(),
            cookie: None,
            address: None,
        }
    }

    /// The same browser at another replica.
    fn at(&self, base: &str) -> Self {
        Self {
            cookie: self.cookie.clone(),
            ..Self::new(base)
        }
    }

    async fn send(&mut self, method: Method, path: &str, origin: Option<&str>) -> Response {
        let address = format!("{}/console/sign-in{path}", self.base);
        let mut request = self.http.request(method, address);
        let from = self.address.unwrap_or_else(new_address);
        request = request.header("x-forwarded-for", from.to_string());
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", format!("theme=dark; {cookie}"));
        }
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        let answer = request.send().await.unwrap();
        assert_eq!(answer.headers()["cache-control"], "no-store");
        if let Some(set) = answer.headers().get("set-cookie") {
            let (cookie, attributes) = set.to_str().unwrap().split_once("; ").unwrap();
            let safe = "HttpOnly; SameSite=Lax; Secure";
            assert!(cookie.starts_with("__Host-") && attributes.ends_with(safe));
            let is_removed = attributes.contains("Max-Age=0;");
            self.cookie = (!is_removed).then(|| cookie.to_owned());
        }
        answer
    }

    /// Returns the address that the gateway sends the browser to.
    async fn follow(&mut self, path: &str) -> String {
        let answer = self.send(Method::GET, path, None).await;
        assert_eq!(answer.status(), 303);
        answer.headers()["location"].to_str().unwrap().to_owned()
    }

    /// Goes to the provider and back. Returns the path of the way back.
    async fn visit(&mut self, provider: &Provider) -> String {
        let to = self.follow("/begin").await;
        format!("/callback?{}", provider.authorize(&to))
    }

    /// Asks for the token.
    async fn claim(&mut self) -> (u16, Value) {
        let answer = self.send(Method::POST, "/token", Some(ORIGIN)).await;
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// Signs in, and returns a client with the token.
    async fn sign_in(&mut self, provider: &Provider) -> Client {
        let back = self.visit(provider).await;
        assert_eq!(self.follow(&back).await, DONE);
        let (status, body) = self.claim().await;
        assert_eq!(status, 200, "{body}");
        let token = body["token"].as_str().unwrap();
        Client::new(&self.base, Some(token.to_owned()))
    }

    /// Returns the reason why the person is not signed in.
    async fn refusal(&mut self, back: &str) -> String {
        let to = self.follow(back).await;
        assert_eq!(self.claim().await.0, 401, "{to}");
        let reason = to.strip_prefix("../#/sign-in?failed=");
        reason.unwrap_or_else(|| panic!("{to}")).to_owned()
    }
}

#[tokio::test]
async fn person_gets_the_role_of_their_group_until_they_sign_out() {
    let provider = Provider::start().await;
    let (app, acme, globex) = start(&provider).await;
    let mut browser = Browser::new(&app.base);
    let described = browser.send(Method::GET, "", None).await;
    let described: Value = described.json().await.unwrap();
    assert_eq!(described, json!({"provider": "Acme"}));

    let jane = browser.sign_in(&provider).await;
    assert_eq!(browser.cookie, None);
    let me = jane.get("/v1/caller").await;
    assert_eq!(me.status, 200);
    assert_eq!(me.body["account"], "acme");
    assert_eq!(me.body["role"], "EDITOR");
    assert_eq!(me.body["person"], "jane@example.com");
    assert!(me.body["expireTime"].is_string());
    let namespace = acme.namespace().await;
    jane.connection(&namespace).await;
    let forbidden = jane.delete(&format!("/v1/{namespace}")).await;
    assert_eq!(forbidden.status, 403);
    let of_globex = globex.namespace().await;
    let foreign = jane.get(&format!("/v1/{of_globex}/managers")).await;
    assert_eq!(foreign.status, 403);

    let mut guest = Browser::new(&app.base);
    provider
        .claim(json!({"groups": "guests", "email_verified": false, "preferred_username": "joe"}));
    let joe = guest.sign_in(&provider).await;
    let me = joe.get("/v1/caller").await;
    assert_eq!(
        (&me.body["account"], &me.body["role"]),
        (&json!("globex"), &json!("VIEWER"))
    );
    assert_eq!(me.body["person"], "joe");
    assert_eq!(
        joe.get(&format!("/v1/{of_globex}/managers")).await.status,
        200
    );
    assert_eq!(
        joe.get(&format!("/v1/{namespace}/managers")).await.status,
        403
    );
    let write = joe.request(Method::POST, &format!("/v1/{of_globex}/managers"));
    assert_eq!(write.send().await.unwrap().status(), 403);

    // A key of an operator is not signed out.
    let out = acme
        .request(Method::POST, "/console/sign-in/end")
        .send()
        .await;
    assert_eq!(out.unwrap().status(), 403);
    let out = jane
        .request(Method::POST, "/console/sign-in/end")
        .send()
        .await;
    assert_eq!(out.unwrap().status(), 200);
    eventually("the session ends", async || {
        let answer = jane.request(Method::GET, "/v1/caller").send().await;
        answer.unwrap().status() == 401
    })
    .await;
    assert_eq!(joe.get("/v1/caller").await.status, 200);

    let mut conn = app.database.connect().await;
    let sessions = keys::list_sessions(&mut conn, SessionFilter::default())
        .await
        .unwrap();
    let states: Vec<_> = sessions
        .iter()
        .map(|one| (one.person.as_deref().unwrap(), one.revoke_time.is_some()))
        .collect();
    assert_eq!(states, [("jane@example.com", true), ("joe", false)]);
    assert!(
        sessions
            .iter()
            .all(|one| one.subject.as_deref() == Some("7"))
    );
    let log = acme
        .get("/v1/namespaces/-/auditEvents?orderBy=createTime")
        .await;
    let resource = format!("people/jane@example.com/sessions/{}", sessions[0].id);
    let events = log.body["auditEvents"].as_array().unwrap();
    let actions: Vec<_> = events
        .iter()
        .filter(|event| event["resource"] == resource)
        .map(|event| (event["action"].as_str().unwrap(), &event["actor"]))
        .collect();
    let actor = json!({"type": "API_KEY", "key": sessions[0].id});
    assert_eq!(actions, [("CREATE", &actor), ("REVOKE", &actor)]);
}

#[tokio::test]
async fn session_without_points_can_be_ended() {
    let provider = Provider::start().await;
    let settings = oidc(&provider);
    let app = TestApp::start_with(|config| {
        config.gateway.oidc = Some(settings);
        config.gateway.rate_limit_per_minute = 5;
    })
    .await;
    app.account("acme").await;
    let jane = Browser::new(&app.base).sign_in(&provider).await;
    while jane.get("/v1/caller").await.status != 429 {}
    let out = jane
        .request(Method::POST, "/console/sign-in/end")
        .send()
        .await;
    assert_eq!(out.unwrap().status(), 200);
}

#[tokio::test]
async fn token_that_is_not_for_this_sign_in_is_refused() {
    let provider = Provider::start().await;
    let (app, ..) = start(&provider).await;
    let mut browser = Browser::new(&app.base);
    let seconds = || Timestamp::now().to_chrono().timestamp();
    let now = seconds();
    for claims in [
        json!({"iss": "https://id.example.com"}),
        json!({"iss": [provider.issuer()]}),
        json!({"iss": null}),
        json!({"aud": "another"}),
        json!({"aud": []}),
        json!({"aud": null}),
        // For others too, and not issued to this client.
        json!({"aud": [CLIENT_ID, "another"]}),
        json!({"aud": [CLIENT_ID, "another"], "azp": "another"}),
        json!({"azp": "another"}),
        json!({"nonce": "another"}),
        json!({"nonce": null}),
        json!({"exp": now - 120}),
        json!({"exp": "never"}),
        json!({"exp": null}),
        json!({"nbf": now + 600}),
        json!({"sub": null}),
        json!({"sub": ""}),
    ] {
        provider.claim(claims.clone());
        let back = browser.visit(&provider).await;
        assert_eq!(browser.refusal(&back).await, "invalid", "{claims}");
    }
    // Clocks may differ by a minute. Only a machine that stalled for as long may refuse this token.
    loop {
        let end = seconds() - 1;
        provider.claim(json!({"exp": end}));
        let back = browser.visit(&provider).await;
        let to = browser.follow(&back).await;
        if to == DONE {
            break;
        }
        assert!(end + 60 < seconds(), "{to}");
    }
    let now = seconds();
    for claims in [
        json!({"nbf": now + 10}),
        json!({"aud": [CLIENT_ID, "another"], "azp": CLIENT_ID}),
    ] {
        provider.claim(claims);
        browser.sign_in(&provider).await;
    }
}

#[tokio::test]
async fn token_with_another_signature_is_refused() {
    let provider = Provider::start().await;
    let (app, ..) = start(&provider).await;
    let mut browser = Browser::new(&app.base);
    for header in [
        json!({"alg": "none"}),
        json!({"alg": "HS256", "kid": "one"}),
        json!({"alg": "RS256", "kid": "one"}),
        json!({"alg": "ES384", "kid": "one"}),
        json!({"alg": "ES256", "kid": "unknown"}),
        json!({"alg": "ES256", "kid": "other"}),
    ] {
        provider.head(header.clone());
        let back = browser.visit(&provider).await;
        assert_eq!(browser.refusal(&back).await, "invalid", "{header}");
    }
    provider.head(json!({"alg": "ES256"}));
    browser.sign_in(&provider).await;

    // The key `one` did not sign this.
    provider.rotate("two");
    provider.head(json!({"alg": "ES256", "kid": "one"}));
    let back = browser.visit(&provider).await;
    assert_eq!(browser.refusal(&back).await, "invalid");
}

#[tokio::test]
async fn new_key_of_the_provider_is_found() {
    let provider = Provider::start().await;
    let (app, ..) = start(&provider).await;
    let mut browser = Browser::new(&app.base);
    browser.sign_in(&provider).await;
    provider.rotate("two");
    eventually("the keys are read again", async || {
        let back = browser.visit(&provider).await;
        browser.follow(&back).await == DONE
    })
    .await;
    assert_eq!(browser.claim().await.0, 200);
}

#[tokio::test]
async fn code_and_state_work_once_and_in_the_browser_that_began() {
    let provider = Provider::start().await;
    let (app, ..) = start(&provider).await;
    let mut browser = Browser::new(&app.base);
    let mut other = Browser::new(&app.base);
    let back = browser.visit(&provider).await;

    // Without a cookie, and with that of another sign-in.
    assert_eq!(other.refusal(&back).await, "expired");
    let of_other = other.visit(&provider).await;
    assert_eq!(other.refusal(&back).await, "expired");
    let (code, _) = back.split_once("&state=").unwrap();
    assert_eq!(browser.refusal(code).await, "expired");
    // The code of one sign-in in the other: its verifier does not fit.
    let (_, state) = of_other.split_once("&state=").unwrap();
    let injected = format!("{code}&state={state}");
    assert_eq!(other.refusal(&injected).await, "invalid");

    // The code was used by then, and a state works once.
    assert_eq!(browser.refusal(&back).await, "invalid");
    assert_eq!(browser.refusal(&back).await, "expired");

    let back = browser.visit(&provider).await;
    assert_eq!(browser.follow(&back).await, DONE);
    assert_eq!(browser.follow(&back).await, "../#/sign-in?failed=expired");
    let cookie = browser.cookie.clone();
    assert_eq!(browser.claim().await.0, 200);
    browser.cookie = cookie;
    assert_eq!(browser.claim().await.0, 401);
}

#[tokio::test]
async fn only_the_console_may_ask_for_a_token() {
    let provider = Provider::start().await;
    let (app, ..) = start(&provider).await;
    let mut browser = Browser::new(&app.base);
    let back = browser.visit(&provider).await;
    assert_eq!(browser.follow(&back).await, DONE);
    for origin in [None, Some("null"), Some("https://evil.example.com")] {
        let answer = browser.send(Method::POST, "/token", origin).await;
        assert_eq!(answer.status(), 403, "{origin:?}");
    }
    let stranger = Browser::new(&app.base).claim().await;
    assert_eq!(stranger.0, 401);
    assert_eq!(browser.claim().await.0, 200);
}

/// These routes are not in openapi.yaml, whose operations other tests try with the keys of another account.
#[tokio::test]
async fn routes_outside_the_api_show_and_change_nothing_without_their_token() {
    let provider = Provider::start().await;
    let (app, acme, _) = start(&provider).await;
    let namespace = acme.namespace().await;
    let mail = json!({
        "nickname": "mail", "type": "HTTP_CONNECTION", "format": "EMAIL", "url": "mailto:ada@example.com"
    });
    let path = format!("/v1/{namespace}/connections");
    let connection = acme.made(&path, &mail).await;
    let (_, id) = connection.split_once("/connections/").unwrap();
    // A sign-in that another browser has begun, and one that waits for its console.
    let (mut begun, mut granted) = (Browser::new(&app.base), Browser::new(&app.base));
    let of_begun = begun.visit(&provider).await;
    let back = granted.visit(&provider).await;
    assert_eq!(granted.follow(&back).await, DONE);
    let long = "UPDATE sign_ins SET expire_time = expire_time + interval '1 hour'";
    app.database.run(long).await;

    let [of_begun, back] = [of_begun, back].map(|path| format!("/console/sign-in{path}"));
    let [confirm, unsubscribe] = ["confirm", "unsubscribe"].map(|it| format!("/mail/{it}/{id}"));
    let strange = app.owner_key("globex").await;
    for key in [None, Some(&strange)] {
        let of_key = if key.is_some() { 403 } else { 401 };
        for (method, path, expected) in [
            (Method::GET, "/console/sign-in", 200),
            (Method::GET, "/console/sign-in/begin", 303),
            (Method::GET, "/console/sign-in/callback", 303),
            (Method::GET, &*of_begun, 303),
            (Method::GET, &*back, 303),
            (Method::POST, "/console/sign-in/token", 401),
            (Method::POST, "/console/sign-in/end", of_key),
            (Method::GET, &*confirm, 404),
            (Method::POST, &*confirm, 404),
            (Method::GET, &*unsubscribe, 404),
            (Method::POST, &*unsubscribe, 404),
        ] {
            let http = &granted.http;
            let mut request = http.request(method.clone(), format!("{}{path}", app.base));
            request = request.header("origin", ORIGIN);
            if let Some(key) = key {
                request = request.bearer_auth(key);
            }
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status(), expected, "{method} {path}");
            let text = answer.text().await.unwrap();
            for private in ["acme", "jane", "ada@", id] {
                assert!(!text.contains(private), "{method} {path}: {text}");
            }
        }
    }
    let read = acme.get(&format!("/v1/{connection}")).await.body;
    assert_eq!(read["recipients"][0]["state"], "PENDING");
    let (_, of_begun) = of_begun.split_at("/console/sign-in".len());
    assert_eq!(begun.follow(of_begun).await, DONE);
    assert_eq!(granted.claim().await.0, 200);
}

#[tokio::test]
async fn each_step_may_be_taken_by_another_replica() {
    let provider = Provider::start().await;
    let (app, ..) = start(&provider).await;
    let mut replica = config(&app.database.url_of(Service::Gateway));
    replica.gateway.oidc = Some(oidc(&provider));
    let (other, _shutdown) = serve(&replica);
    let mut browser = Browser::new(&app.base);
    let back = browser.visit(&provider).await;
    let mut browser = browser.at(&other);
    assert_eq!(browser.follow(&back).await, DONE);
    let mut browser = browser.at(&app.base);
    let (status, body) = browser.claim().await;
    assert_eq!(status, 200);
    let token = body["token"].as_str().unwrap();
    for base in [&app.base, &other] {
        let client = Client::new(base, Some(token.to_owned()));
        assert_eq!(client.get("/v1/caller").await.status, 200);
    }

    let key: ApiKey = token.parse().unwrap();
    let mut conn = app.database.connect().await;
    assert!(
        keys::revoke(&mut conn, key.id, Timestamp::now())
            .await
            .unwrap()
    );
    for base in [&app.base, &other] {
        let client = Client::new(base, Some(token.to_owned()));
        eventually("the session ends", async || {
            client.get("/v1/caller").await.status == 401
        })
        .await;
    }
}

#[tokio::test]
async fn failures_of_the_provider_are_explained_by_the_console() {
    let provider = Provider::start().await;
    provider.fail("/.well-known/openid-configuration", 503);
    let (app, ..) = start(&provider).await;
    let mut browser = Browser::new(&app.base);
    for _ in 0..2 {
        assert_eq!(browser.refusal("/begin").await, "unavailable");
    }
    provider.fail("/.well-known/openid-configuration", 200);
    eventually("the provider answers", async || {
        browser.follow("/begin").await.starts_with("http")
    })
    .await;

    provider.fail("/token", 500);
    let back = browser.visit(&provider).await;
    assert_eq!(browser.refusal(&back).await, "unavailable");
    provider.fail("/token", 200);
    // Its document and keys are cached.
    provider.fail("/.well-known/openid-configuration", 503);
    provider.fail("/keys", 503);
    browser.sign_in(&provider).await;

    let back = browser.visit(&provider).await;
    let (_, state) = back.split_once("&state=").unwrap();
    let (state, _) = state.split_once('&').unwrap();
    let denied = format!("/callback?error=access_denied&state={state}");
    assert_eq!(browser.refusal(&denied).await, "refused");
    let back = browser.visit(&provider).await;
    let (without_issuer, _) = back.split_once("&iss=").unwrap();
    assert_eq!(browser.refusal(without_issuer).await, "invalid");
    let back = browser.visit(&provider).await;
    let of_another = format!(
        "{}&iss=https://id.example.com",
        back.split_once("&iss=").unwrap().0
    );
    assert_eq!(browser.refusal(&of_another).await, "invalid");
    for groups in [
        json!([]),
        json!(null),
        json!(7),
        json!(["Staff", "ghosts"]),
        json!("ghosts"),
    ] {
        provider.claim(json!({"groups": groups}));
        let back = browser.visit(&provider).await;
        assert_eq!(browser.refusal(&back).await, "not-allowed", "{groups}");
    }
}

#[tokio::test]
async fn steps_that_need_no_key_are_throttled_by_address() {
    let provider = Provider::start().await;
    let (app, ..) = start(&provider).await;
    let mut browser = Browser::new(&app.base);
    browser.address = Some(new_address());
    let back = browser.visit(&provider).await;
    let cookie = browser.cookie.clone();
    let throttled = "../#/sign-in?failed=too-many";
    eventually("the way back is throttled", async || {
        browser.follow("/callback?code=a&state=b").await == throttled
    })
    .await;
    eventually("the beginning is throttled", async || {
        browser.follow("/begin").await == throttled
    })
    .await;
    eventually("the token is throttled", async || {
        let answer = browser.send(Method::POST, "/token", Some(ORIGIN)).await;
        let is_throttled = answer.status() == 429;
        assert!(is_throttled || answer.status() == 401);
        assert_eq!(is_throttled, answer.headers().contains_key("retry-after"));
        is_throttled
    })
    .await;

    // From elsewhere, the same browser goes on. Mails are counted apart.
    let elsewhere = browser.address.replace(new_address());
    browser.cookie = cookie;
    assert_eq!(browser.follow(&back).await, DONE);
    assert_eq!(browser.claim().await.0, 200);
    let mail = browser.http.get(format!("{}/mail/confirm/0", app.base));
    let from = elsewhere.unwrap().to_string();
    let mail = mail.header("x-forwarded-for", from).send().await.unwrap();
    assert_eq!(mail.status(), 404);
}

#[tokio::test]
async fn gateway_without_a_provider_offers_no_sign_in() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app.base);
    let described = browser.send(Method::GET, "", None).await;
    assert_eq!(described.json::<Value>().await.unwrap(), json!({}));
    for (method, path) in [
        (Method::GET, "/begin"),
        (Method::GET, "/callback?code=a&state=b"),
        (Method::POST, "/token"),
    ] {
        let answer = browser.send(method, path, Some(ORIGIN)).await;
        assert_eq!(answer.status(), 404, "{path}");
    }
    let out = browser.send(Method::POST, "/end", Some(ORIGIN)).await;
    assert_eq!(out.status(), 401);
}
