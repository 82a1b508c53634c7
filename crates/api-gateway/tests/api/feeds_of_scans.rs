//! `/feeds`: what feed readers get, and who may read it.

use domain::key::ApiKey;
use reqwest::Method;
use test_support::post;

use crate::{app::TestApp, client::Client, scans::record};

struct Reader {
    app: TestApp,
    acme: Client,
    key: String,
    manager: String,
}

impl Reader {
    async fn start() -> Self {
        let app = TestApp::start().await;
        let key = app.owner_key("acme").await;
        let acme = Client::new(&app.base, Some(key.clone()));
        let namespace = acme.namespace().await;
        let manager = acme.manager(&namespace).await;
        Self {
            app,
            acme,
            key,
            manager,
        }
    }

    fn path(&self, form: &str) -> String {
        let mut parts = self.manager.split('/');
        let (namespace, manager) = (parts.nth(1).unwrap(), parts.nth(1).unwrap());
        format!("/feeds/{namespace}/{manager}.{form}")
    }
}

const HOSTILE: &str =
    "</title><script>alert(1)</script> ]]> &amp; \u{202e}\u{1b}[2J\u{0}\u{ffff} <b>";

#[tokio::test]
async fn hostile_posts_are_plain_text_in_feeds() {
    let reader = Reader::start().await;
    let mut hostile = post("1", HOSTILE);
    hostile.text = Some(format!("{HOSTILE}{}", "x".repeat(40_000)).replace('\0', ""));
    hostile.title = Some(HOSTILE.replace('\0', ""));
    hostile.user.name = "\"><a href='x'>".to_owned();
    hostile.url = "javascript:alert(1)".to_owned();
    record(
        &reader.app,
        &reader.manager,
        &[post("2", "second"), hostile],
    )
    .await;
    for form in ["atom", "json"] {
        let body = reader.acme.text(&reader.path(form)).await;
        let feed =
            feed_rs::parser::parse(body.as_bytes()).unwrap_or_else(|e| panic!("{e}: {body}"));
        assert_eq!(feed.title.unwrap().content, "watch", "{form}");
        assert_eq!(feed.entries.len(), 2, "{form}");
        let one = feed
            .entries
            .iter()
            .find(|entry| entry.title.as_ref().unwrap().content.contains("script"))
            .unwrap();
        assert!(
            one.title
                .as_ref()
                .unwrap()
                .content
                .contains("</title><script>alert(1)</script> ]]>")
        );
        assert!(one.links.is_empty(), "{form}: {:?}", one.links);
        assert_eq!(one.authors[0].name.as_deref(), Some("\"><a href='x'>"));
        assert!(body.len() < 20_000, "{form}: {}", body.len());
        let other = feed
            .entries
            .iter()
            .find(|entry| entry.id != one.id)
            .unwrap();
        assert_eq!(other.links.len(), 1, "{form}");
    }
}

#[tokio::test]
async fn key_is_accepted_as_a_password_on_feeds_only() {
    let reader = Reader::start().await;
    let basic = async |path: &str, key: &str| {
        let stranger = reader.app.stranger();
        let shape = |request: reqwest::RequestBuilder| request.basic_auth("any", Some(key));
        stranger.send(Method::GET, path, shape).await
    };
    for form in ["atom", "json"] {
        let path = reader.path(form);
        assert_eq!(basic(&path, &reader.key).await.status, 200);
        assert_eq!(reader.acme.get(&path).await.status, 200);
        for wrong in [ApiKey::generate().expose(), String::new()] {
            let answer = basic(&path, &wrong).await;
            assert_eq!(answer.status, 401);
            let ask = answer.headers["www-authenticate"].to_str().unwrap();
            assert!(ask.starts_with("Basic "), "{ask}");
        }
    }
    for path in [
        "/v1/namespaces".to_owned(),
        format!("/v1/{}/scans", reader.manager),
    ] {
        let answer = basic(&path, &reader.key).await;
        assert_eq!(answer.status, 401, "{path}");
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
    }
}

#[tokio::test]
async fn unchanged_feed_of_scans_answers_304() {
    let reader = Reader::start().await;
    record(&reader.app, &reader.manager, &[post("1", "first")]).await;
    for form in ["atom", "json"] {
        let path = reader.path(form);
        let first = reader.acme.get(&path).await;
        let again = async |name: &str, value: &str| {
            let shape = |request: reqwest::RequestBuilder| request.header(name, value);
            reader.acme.send(Method::GET, &path, shape).await.status
        };
        let tag = first.headers["etag"].to_str().unwrap();
        let modified = first.headers["last-modified"].to_str().unwrap();
        assert_eq!(again("if-none-match", tag).await, 304);
        assert_eq!(again("if-none-match", "W/\"0\"").await, 200);
        assert_eq!(again("if-modified-since", modified).await, 304);
        let old = "Sat, 01 Jan 2000 00:00:00 GMT";
        assert_eq!(again("if-modified-since", old).await, 200);
    }
    let before = reader.acme.get(&reader.path("atom")).await;
    record(&reader.app, &reader.manager, &[post("2", "second")]).await;
    let tag = before.headers["etag"].to_str().unwrap();
    let shape = |request: reqwest::RequestBuilder| request.header("if-none-match", tag);
    let after = reader
        .acme
        .send(Method::GET, &reader.path("atom"), shape)
        .await;
    assert_eq!(after.status, 200);
}
