use domain::{Id, ManagerName, Match, Post, PostType, Timestamp};
use serde_json::{Value, json};
use store::{AsyncConnection, scans};
use test_support::post;

use crate::app::TestApp;

/// Records a Scan of each post, in one transaction each.
pub(crate) async fn record(app: &TestApp, manager: &str, posts: &[Post]) {
    let manager: ManagerName = manager.parse().unwrap();
    let feed = "hackernews:newest".parse().unwrap();
    let mut conn = app.database.connect().await;
    for (n, post) in posts.iter().enumerate() {
        let new = scans::NewScan {
            manager,
            post,
            matched: Match {
                score: n as f64 / 10.0,
                terms: vec!["backup".to_owned()],
                ..Match::default()
            },
        };
        let made = conn
            .transaction(async |conn| scans::record(conn, &feed, &[new], Timestamp::now()).await)
            .await
            .unwrap();
        assert_eq!(made.len(), 1);
    }
}

fn titles(page: &Value) -> Vec<&str> {
    let scans = page["scans"].as_array().unwrap();
    scans
        .iter()
        .map(|scan| scan["post"]["title"].as_str().unwrap_or_default())
        .collect()
}

#[tokio::test]
async fn scans_can_be_listed_and_read() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = acme.manager(&namespace).await;
    let path = format!("/v1/{manager}/scans");
    assert_eq!(acme.get(&path).await.body, json!({"scans": []}));

    let mut tweet = post("t1", "");
    tweet.post_type = PostType::MicroblogTweet;
    (tweet.title, tweet.subforum) = (None, None);
    record(&app, &manager, &[post("1", "first"), tweet]).await;

    let page = acme.get(&path).await;
    assert_eq!(titles(&page.body), ["", "first"]);
    let scan = &page.body["scans"][1];
    assert_eq!(scan["value"], true);
    assert_eq!(scan["match"]["terms"], json!(["backup"]));
    assert_eq!(scan["post"]["subforum"]["name"], "Sub");
    assert_eq!(page.body["scans"][0]["post"].get("title"), None);
    let name = scan["name"].as_str().unwrap();
    assert_eq!(&acme.get(&format!("/v1/{name}")).await.body, scan);
}

#[tokio::test]
async fn polling_scans_by_create_time_returns_all() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = acme.manager(&namespace).await;
    let path = format!("/v1/{manager}/scans");
    let mut seen = Vec::new();
    let mut last = "2000-01-01T00:00:00Z".to_owned();
    for round in 0..5 {
        let posts: Vec<Post> = (0..3)
            .map(|n| post(&format!("{round}-{n}"), &format!("{round}-{n}")))
            .collect();
        record(&app, &manager, &posts).await;
        let filter = format!("createTime > \"{last}\"");
        let query = [("filter", filter.as_str()), ("orderBy", "createTime asc")];
        let page = acme.get_with(&path, &query).await;
        seen.extend(titles(&page.body).into_iter().map(str::to_owned));
        let scans = page.body["scans"].as_array().unwrap();
        last = scans.last().unwrap()["createTime"]
            .as_str()
            .unwrap()
            .to_owned();
    }
    let expected: Vec<String> = (0..5)
        .flat_map(|round| (0..3).map(move |n| format!("{round}-{n}")))
        .collect();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn scans_can_be_filtered_and_ordered_by_every_field() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = acme.manager(&namespace).await;
    let path = format!("/v1/{manager}/scans");
    let mut tweet = post("t1", "");
    tweet.post_type = PostType::MicroblogTweet;
    (tweet.title, tweet.subforum) = (None, None);
    let posts = [
        post("1", "A backup"),
        post("2", "Another"),
        tweet,
        post("4", "fourth"),
    ];
    record(&app, &manager, &posts).await;

    for (filter, count) in [
        (r#"post.title : "BACKUP""#, 1),
        (r#"post.type = FORUM_LINK"#, 3),
        (r#"post.subforum.id = "s" AND post.user.id = "u""#, 3),
        (r#"match.score > 0.05 AND value = true"#, 3),
        (r#"match.score >= -1.5"#, 4),
        (r#"post.id = "2""#, 1),
        (r#"post.url : "forum.example/4""#, 1),
        (r#"-post.text = "text""#, 0),
        (r#"post.time > "2000-01-01T00:00:00Z""#, 4),
        (r#"value = false"#, 0),
    ] {
        let page = acme.get_with(&path, &[("filter", filter)]).await;
        assert_eq!(page.status, 200, "{filter}: {}", page.body);
        assert_eq!(titles(&page.body).len(), count, "{filter}");
    }
    let labels = acme.get_with(&path, &[("orderBy", "labels")]).await;
    assert_eq!(labels.status, 400, "a list has no order: {}", labels.body);
    let orderable = domain::list::SCAN_FIELDS.iter();
    for field in orderable.filter(|field| field.name != "labels") {
        for direction in ["", " desc"] {
            let order = format!("{}{direction}", field.name);
            let mut token = String::new();
            let mut seen = Vec::new();
            loop {
                let query = [
                    ("orderBy", order.as_str()),
                    ("pageSize", "1"),
                    ("pageToken", &token),
                ];
                let page = acme.get_with(&path, &query).await;
                assert_eq!(page.status, 200, "{order}: {}", page.body);
                seen.extend(titles(&page.body).into_iter().map(str::to_owned));
                match page.body["nextPageToken"].as_str() {
                    Some(next) => token = next.to_owned(),
                    None => break,
                }
            }
            // The missing title is first, as if it were empty.
            let mut all = ["", "A backup", "Another", "fourth"];
            if field.name != "post.title" {
                seen.sort_unstable();
            } else if !direction.is_empty() {
                all.reverse();
            }
            assert_eq!(seen, all, "{order}");
        }
    }
}

#[tokio::test]
async fn missing_resource_is_reported_before_an_invalid_query() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = acme.manager(&namespace).await;
    let missing = format!("{namespace}/managers/{}", Id::generate());
    let hook = format!("{namespace}/connections/{}", Id::generate());
    for (path, what) in [
        (format!("/v1/{hook}/deliveries"), "connection"),
        (format!("/v1/{hook}/replays"), "connection"),
        (format!("/v1/{hook}/stats"), "connection"),
        (format!("/v1/{missing}/stats"), "manager"),
        (format!("/v1/{missing}/feeds"), "manager"),
        (format!("/v1/{missing}/scans"), "manager"),
        (
            format!("/v1/{namespace}/managers/nonsense/scans"),
            "manager",
        ),
        (format!("/v1/{namespace}/managers/nonsense"), "manager"),
        (format!("/v1/{manager}/scans/nonsense"), "scan"),
        (format!("/v1/{manager}/scans/{}", Id::generate()), "scan"),
    ] {
        for query in ["", "?colour=red"] {
            let answer = acme.get(&format!("{path}{query}")).await;
            assert_eq!(answer.status, 404, "{path}{query}");
            assert_eq!(answer.body["message"], format!("{what} not found"));
        }
    }
    for name in [
        &missing,
        &hook,
        &format!("{hook}/replays/{}", Id::generate()),
    ] {
        let path = format!("/v1/{name}?colour=red");
        let answer = acme.delete(&path).await;
        assert_eq!(answer.status, 404, "{path}");
    }
}
