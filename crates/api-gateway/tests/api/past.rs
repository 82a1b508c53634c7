//! Posts from before a request: health of feeds, stored posts, and backfills.

use diesel_async::SimpleAsyncConnection;
use domain::{Post, Timestamp, key::Role};
use serde_json::{Value, json};
use store::{AsyncConnection, recent_posts};
use test_support::eventually;

use crate::{
    app::TestApp,
    client::{Client, manager_body},
};

const FEED: &str = "hackernews:newest";

/// Creates a MANUAL Manager of Hacker News' newest posts whose instructions are in use.
async fn manager(app: &TestApp, acme: &Client, namespace: &str) -> String {
    manager_of(app, acme, namespace, FEED).await
}

async fn manager_of(app: &TestApp, acme: &Client, namespace: &str, feed: &str) -> String {
    let instructions = json!({
        "feeds": [feed], "include": [{"text": "kettle", "weight": 1}], "threshold": 1
    });
    app.manual_manager(acme, namespace, &instructions).await
}

fn post(id: &str, title: &str) -> Post {
    test_support::post(id, title)
}

async fn kept(app: &TestApp, feed: &str, posts: &[Post]) {
    let mut conn = app.database.connect().await;
    let feed = feed.parse().unwrap();
    conn.transaction(async |conn| {
        let now = Timestamp::now();
        recent_posts::insert(conn, &feed, posts, now, u32::MAX)
            .await
            .map_err(store::Error::from)
    })
    .await
    .unwrap();
}

/// A lock on `recent_posts` makes running previews visible.
#[tokio::test]
async fn an_account_computes_one_preview_at_a_time_and_delays_no_other() {
    const WAITING: &str = "pg_locks WHERE NOT granted AND relation = 'recent_posts'::regclass \
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let globex = app.account("globex").await;
    let mut paths = Vec::new();
    let initech = app.account("initech").await;
    for client in [&acme, &globex, &initech] {
        let namespace = client.namespace().await;
        let name = manager(&app, client, &namespace).await;
        paths.push(format!("/v1/{name}:preview"));
    }
    let recent = json!({"recent": 100});
    let many = futures::future::join_all((0..6).map(|_| acme.post(&paths[0], &recent)));
    let one = globex.post(&paths[1], &recent);
    let mut conn = app.database.connect().await;
    let lock = "BEGIN; LOCK TABLE recent_posts";
    conn.batch_execute(lock).await.unwrap();
    let checked = async {
        eventually("one of each account runs", async || {
            app.database.count(WAITING).await == 2
        })
        .await;
        // One that was asked for later starts before the others of one account.
        let later = async {
            assert_eq!(initech.post(&paths[2], &recent).await.status, 200);
        };
        let seen = async {
            eventually("a later one runs", async || {
                app.database.count(WAITING).await >= 3
            })
            .await;
            assert_eq!(app.database.count(WAITING).await, 3);
            conn.batch_execute("COMMIT").await.unwrap();
        };
        tokio::join!(later, seen);
    };
    let (many, one, ()) = tokio::join!(many, one, checked);
    assert_eq!(one.status, 200, "{}", one.body);
    let done = many.iter().filter(|answer| answer.status == 200).count();
    // On a slow machine, the others waited too long.
    let refused = many.iter().filter(|answer| answer.status == 429).count();
    assert!(done >= 1 && done + refused == 6, "{done} {refused}");
}

fn told(body: &Value) -> Vec<(String, String)> {
    let results = body["results"].as_array().unwrap().iter();
    results
        .map(|result| {
            let title = result["post"]["title"].as_str().unwrap_or_default();
            (
                title.to_owned(),
                result["reason"].as_str().unwrap().to_owned(),
            )
        })
        .collect()
}

#[tokio::test]
async fn preview_accepts_recent_posts_and_addresses() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let name = manager(&app, &acme, &namespace).await;
    let (old, new) = (
        post("hackernews:1", "A kettle"),
        post("hackernews:2", "A toaster"),
    );
    kept(&app, FEED, &[old.clone(), new.clone()]).await;
    let path = format!("/v1/{name}:preview");

    let recent = acme.post(&path, &json!({"recent": 100})).await;
    assert_eq!(recent.status, 200, "{}", recent.body);
    let expected = [("A toaster", "BELOW_THRESHOLD"), ("A kettle", "MATCHED")];
    assert_eq!(
        told(&recent.body),
        expected.map(|(a, b)| (a.to_owned(), b.to_owned()))
    );
    let one = acme.post(&path, &json!({"recent": 1})).await;
    assert_eq!(told(&one.body).len(), 1);
    let bound = new.time.to_string();
    for (field, title) in [("startTime", "A toaster"), ("endTime", "A kettle")] {
        let mut bounded = json!({"recent": 100});
        bounded[field] = json!(bound);
        let answer = acme.post(&path, &bounded).await;
        let titles: Vec<_> = told(&answer.body).into_iter().map(|(it, _)| it).collect();
        assert_eq!(titles, [title], "{field}");
    }

    assert_eq!(recent.body["keptSince"], Value::Null);
    let since = Timestamp::now().minus(std::time::Duration::from_hours(5));
    for sql in [
        format!("UPDATE feeds SET kept_since = '{since}', read_time = now()"),
        "UPDATE account_feeds SET watch_time = now() - interval '10 hours'".to_owned(),
    ] {
        app.database.run(&sql).await;
    }
    let one = acme.post(&path, &json!({"recent": 1})).await;
    assert_eq!(one.body["keptSince"], since.to_string());

    let urls = [old.url.as_str(), "https://nobody.example/1", "hackernews:2"];
    let by_url = acme.post(&path, &json!({ "urls": urls })).await;
    assert_eq!(by_url.status, 200, "{}", by_url.body);
    let expected = [
        ("A kettle", "MATCHED"),
        ("", "NEVER_SEEN"),
        ("A toaster", "BELOW_THRESHOLD"),
    ];
    assert_eq!(
        told(&by_url.body),
        expected.map(|(a, b)| (a.to_owned(), b.to_owned()))
    );
    assert_eq!(by_url.body["results"][1]["url"], urls[1]);

    // The post was read, but through a feed that the draft does not name.
    let draft = json!({
        "urls": [old.url], "instructions": {"feeds": ["hackernews:ask"], "include": [{"text": "kettle", "weight": 1}]}
    });
    let unwatched = acme.post(&path, &draft).await;
    assert_eq!(told(&unwatched.body)[0].1, "NOT_WATCHED");

    // Posts of feeds that only other customers watch stay invisible.
    let globex = app.account("globex").await;
    let theirs = globex.namespace().await;
    let other = manager(&app, &globex, &theirs).await;
    let disabled = globex
        .patch(&format!("/v1/{other}"), &json!({"enable": false}))
        .await;
    assert_eq!(disabled.status, 200);
    let unseen = globex
        .post(&format!("/v1/{other}:preview"), &json!({"urls": [old.url]}))
        .await;
    assert_eq!(told(&unseen.body)[0].1, "NEVER_SEEN");
}

#[tokio::test]
async fn preview_hides_recent_posts_of_feeds_that_only_others_watch() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let theirs = manager_of(&app, &acme, &namespace, "hackernews:ask").await;
    kept(&app, "hackernews:ask", &[post("hackernews:1", "A kettle")]).await;
    kept(&app, FEED, &[post("hackernews:2", "Another kettle")]).await;
    let globex = app.account("globex").await;
    let own = globex.namespace().await;
    let mine = manager_of(&app, &globex, &own, "hackernews:show").await;

    // The operator configured the feed of all new posts.
    let draft = json!({
        "recent": 10,
        "instructions": {"feeds": ["hackernews:ask", FEED], "include": [{"text": "kettle", "weight": 1}]}
    });
    for (client, name, titles) in [
        (&globex, &mine, vec!["Another kettle"]),
        (&acme, &theirs, vec!["Another kettle", "A kettle"]),
    ] {
        let tried = client.post(&format!("/v1/{name}:preview"), &draft).await;
        assert_eq!(tried.status, 200, "{}", tried.body);
        let mut shown: Vec<_> = told(&tried.body)
            .into_iter()
            .map(|(title, _)| title)
            .collect();
        shown.sort_by_key(|title| title.len());
        shown.reverse();
        assert_eq!(shown, titles);
    }
}

#[tokio::test]
async fn draft_is_previewed_without_a_manager() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let muted = json!({"mutes": [{"type": "TERM", "value": "toaster"}]});
    let changed = acme.patch(&format!("/v1/{namespace}"), &muted).await;
    assert_eq!(changed.status, 200);
    let posts = [
        "A kettle",
        "A kettle and a toaster",
        "A kettle for the office",
    ];
    let posts: Vec<Post> = (1..)
        .zip(posts)
        .map(|(id, title)| post(&format!("hackernews:{id}"), title))
        .collect();
    kept(&app, FEED, &posts).await;
    kept(&app, "hackernews:ask", &[post("hackernews:9", "A kettle")]).await;
    let path = format!("/v1/{namespace}/managers:preview");
    // Without feeds, the newest posts of the source's platforms.
    let draft = json!({
        "source": {"type": "FORUM"}, "instructions": {"include": [{"text": "kettle", "weight": 1}]},
        "mutes": [{"type": "TERM", "value": "office"}], "recent": 10
    });
    let viewer = app.key("acme", Role::Viewer, None).await;
    let answer = viewer.post(&path, &draft).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let expected = [
        ("A kettle for the office", "MUTED"),
        ("A kettle and a toaster", "MUTED"),
        ("A kettle", "MATCHED"),
    ];
    assert_eq!(
        told(&answer.body),
        expected.map(|(title, reason)| (title.to_owned(), reason.to_owned()))
    );
    assert_eq!(app.database.count("managers").await, 0);

    // A feed that no Manager of the Namespace watches stays invisible.
    let mut unwatched = draft.clone();
    unwatched["instructions"]["feeds"] = json!(["hackernews:ask"]);
    let answer = viewer.post(&path, &unwatched).await;
    assert_eq!((answer.status, told(&answer.body)), (200, vec![]));

    let globex = app.account("globex").await;
    assert_eq!(globex.post(&path, &draft).await.status, 403);
    let without = json!({"source": {"type": "FORUM"}, "recent": 10});
    let refused = viewer.post(&path, &without).await;
    assert_eq!(refused.details(), [("instructions", "required")]);
    let mut elsewhere = draft;
    elsewhere["source"]["type"] = json!("MICROBLOG");
    elsewhere["instructions"]["feeds"] = json!([FEED]);
    let refused = viewer.post(&path, &elsewhere).await;
    assert_eq!(refused.details(), [("instructions.feeds[0]", "conflict")]);
}

#[tokio::test]
async fn feeds_show_their_health() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let waiting = acme.manager(&namespace).await;
    let none = acme.get(&format!("/v1/{waiting}/feeds")).await;
    assert_eq!((none.status, &none.body), (200, &json!({"feeds": []})));
    let name = manager(&app, &acme, &namespace).await;
    let new = acme.get(&format!("/v1/{name}/feeds")).await;
    assert_eq!(new.status, 200, "{}", new.body);
    let feed = &new.body["feeds"][0];
    assert_eq!(
        (&feed["feed"], &feed["state"]),
        (&json!(FEED), &json!("OK"))
    );
    assert_eq!(feed["url"], "https://news.ycombinator.com/newest");
    assert!(feed.get("lastPollTime").is_none() && feed["gaps"] == 0);
    assert_eq!(feed["days"], json!([]));

    app.database
        .run(
            "UPDATE feeds SET trouble = 'BLOCKED', last_error = 'refused by the platform with status 401', \
             last_poll_time = now(), last_post_time = now(), posts_per_day = 12.345, gap_count = 2, \
             notice = 'The feed has no entries.'",
        )
        .await;
    for statement in [
        format!(
            "INSERT INTO feed_days SELECT feed, (now() AT TIME ZONE 'UTC')::date, 12, 1, 2, 3, 1, 11, 20, 4, 99 \
             FROM unnest(ARRAY['{FEED}', 'elsewhere:newest']) AS feed"
        ),
        format!(
            "INSERT INTO feed_gaps (feed, find_time, end_time, reason) VALUES ('{FEED}', now(), \
             '2026-11-21T01:02:03Z', 'a page that cannot be read')"
        ),
    ] {
        app.database.run(&statement).await;
    }
    let told = acme.get(&format!("/v1/{name}/feeds")).await;
    assert_eq!(told.status, 200, "{}", told.body);
    let feed = &told.body["feeds"][0];
    let [day] = &feed["days"].as_array().unwrap()[..] else {
        panic!("{feed}");
    };
    assert_eq!(
        (
            &day["read"],
            &day["late"],
            &day["gone"],
            &day["quarantined"]
        ),
        (&json!(12), &json!(1), &json!(2), &json!(3))
    );
    let ids = json!({
        "upTo": 99, "read": 11, "other": 20, "gone": 4, "notVisible": 0, "unexplained": 0, "unexplainedIds": []
    });
    assert_eq!(day["ids"], ids);
    let gaps = json!([{"to": "2026-11-21T01:02:03.000000Z", "reason": "a page that cannot be read", "state": "OPEN"}]);
    assert_eq!((&day["gapCount"], &day["gaps"]), (&json!(1), &gaps));
    assert_eq!(
        (&feed["state"], &feed["gaps"]),
        (&json!("BLOCKED"), &json!(2))
    );
    assert_eq!(feed["postsPerDay"], json!(12.35));
    assert_eq!(feed["error"], "refused by the platform with status 401");
    assert_eq!(feed["notice"], "The feed has no entries.");

    let absent = format!("/v1/{namespace}/managers/01jd3y9m1r2s3t4v5w6x7y8z9a/feeds");
    assert_eq!(acme.get(&absent).await.status, 404);
}

#[tokio::test]
async fn backfill_can_be_requested() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let name = manager(&app, &acme, &namespace).await;
    app.database.run("DELETE FROM backfills").await;
    let path = format!("/v1/{name}:backfill");
    let start = Timestamp::now()
        .minus(std::time::Duration::from_hours(24 * 7))
        .to_string();
    let asked = acme.post(&path, &json!({"startTime": start})).await;
    assert_eq!(asked.status, 200, "{}", asked.body);
    assert_eq!(
        asked.body,
        json!({"feeds": [{"feed": FEED, "reachTime": start}]})
    );
    assert_eq!(app.database.count("backfills WHERE NOT notify").await, 1);
    let loud = acme.post(&path, &json!({"notify": true})).await;
    assert_eq!(loud.status, 200, "{}", loud.body);
    assert_eq!(app.database.count("backfills").await, 2);

    let early = Timestamp::now()
        .minus(std::time::Duration::from_hours(24 * 31))
        .to_string();
    let refused = acme.post(&path, &json!({"startTime": early})).await;
    assert_eq!(refused.status, 400);
    assert_eq!(refused.body["details"][0]["issue"], "out_of_range");
}

#[tokio::test]
async fn changed_kinds_are_compiled_and_duplicates_are_stored() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let name = manager(&app, &acme, &namespace).await;
    let shown = acme.get(&format!("/v1/{name}")).await.body;
    assert!(shown.get("kinds").is_none() && shown.get("duplicates").is_none());

    let body = json!({"duplicates": "COLLAPSE"});
    let collapsing = acme.patch(&format!("/v1/{name}"), &body).await;
    assert_eq!(
        (collapsing.status, &collapsing.body["state"]),
        (200, &json!("APPLIED"))
    );
    let body = json!({"kinds": ["COMMENT", "POST"]});
    let hearing = acme.patch(&format!("/v1/{name}"), &body).await;
    assert_eq!(hearing.body["state"], "PENDING_APPLY");
    let shown = acme.get(&format!("/v1/{name}")).await.body;
    assert_eq!(shown["kinds"], json!(["POST", "COMMENT"]));
    assert_eq!(shown["duplicates"], "COLLAPSE");

    let mut body = manager_body();
    body["kinds"] = json!(["COMMENT"]);
    body["duplicates"] = json!("COLLAPSE");
    let made = acme.made(&format!("/v1/{namespace}/managers"), &body).await;
    let shown = acme.get(&format!("/v1/{made}")).await.body;
    assert_eq!(
        (&shown["kinds"], &shown["duplicates"]),
        (&json!(["COMMENT"]), &json!("COLLAPSE"))
    );
    let cleared = acme
        .patch(&format!("/v1/{made}"), &json!({"kinds": null}))
        .await;
    assert!(cleared.body.get("kinds").is_none(), "{}", cleared.body);
}
