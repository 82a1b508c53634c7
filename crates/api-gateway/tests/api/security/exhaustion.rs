//! Small requests that would be expensive to serve.

use std::time::Duration;

use diesel_async::SimpleAsyncConnection as _;
use domain::Id;
use reqwest::Method;
use serde_json::json;
use store::{AsyncConnection, AsyncPgConnection, keyed, keys, reads};
use test_support::{TIMEOUT, eventually, post};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    app::{TestApp, last_id},
    client::{Answer, Client},
    scans::record,
};

#[tokio::test]
async fn cost_of_a_filter_is_bounded_by_its_length() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = acme.manager(&namespace).await;
    let path = format!("/v1/{manager}/scans");
    let comparison = r#"post.text : "a" OR "#;
    let long = [
        "(".repeat(2_048),
        "(".repeat(1_000) + &")".repeat(1_000),
        "NOT ".repeat(512),
        "-".repeat(2_048),
        "\"".repeat(2_048),
        format!("post.text : \"{}\"", "\\".repeat(2_031)),
        format!("post.text : \"{}", "\\\"".repeat(1_000)),
        "a.".repeat(1_024),
        " ".repeat(2_000) + "x",
        "createTime > ".repeat(150),
        comparison.repeat(100) + "value = true",
        comparison.repeat(51) + "value = true",
        "x".repeat(60_000),
        "9".repeat(2_000),
        format!("match.score > {}", "9".repeat(2_000)),
    ];
    for filter in long {
        // The error names the invalid part, and stays short even if the filter is long.
        let answer = acme.get_with(&path, &[("filter", &filter)]).await;
        let shown = &filter[..filter.len().min(40)];
        assert!(
            matches!(answer.status, 400 | 431),
            "{shown}: {}",
            answer.status
        );
        assert!(answer.body.to_string().len() < 1_000, "{shown}");
    }
}

/// The same in SQL: `%` and `_` in the search text are not wildcards, so they cause no backtracking.
#[tokio::test]
async fn most_expensive_filter_over_long_texts_is_answered() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = acme.manager(&namespace).await;
    let posts: Vec<_> = (0..5)
        .map(|n| {
            let mut one = post(&format!("p{n}"), "title");
            one.text = Some("a".repeat(20_000));
            one
        })
        .collect();
    record(&app, &manager, &posts).await;
    let path = format!("/v1/{manager}/scans");
    for word in [
        "%a".repeat(15) + "%b",
        "_".repeat(30),
        "a".repeat(29) + "b",
        "\\\\%".repeat(9),
    ] {
        let comparison = format!(r#"post.text : "{word}""#);
        let filter = vec![comparison.as_str(); 40].join(" OR ");
        let answer = search(&acme, &path, &filter).await;
        assert_eq!(
            (answer.status, &answer.body),
            (200, &json!({"scans": []})),
            "{word}"
        );
    }
}

async fn search(client: &Client, path: &str, filter: &str) -> Answer {
    client.get_with(path, &[("filter", filter)]).await
}

/// Creates a Manager with this many Scans of one post, a hundred per second, and the key of an OWNER.
async fn manager_with_scans(app: &TestApp, scans: u32) -> (Client, String) {
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = acme.manager(&namespace).await;
    record(app, &manager, &[post("p", "title")]).await;
    app.database
        .run(&format!(
            "INSERT INTO scans (namespace_id, manager_id, id, create_time, update_time, post_id, post_receive_time, \
                 value, matched) \
             SELECT namespace_id, manager_id, gen_random_uuid(), create_time - n * interval '10 ms', update_time, \
                 post_id, post_receive_time, value, matched FROM scans, generate_series(1, {scans}) AS n"
        ))
        .await;
    (acme, format!("/v1/{manager}/scans"))
}

fn searching(terms: usize) -> String {
    let terms = (0..terms).map(|n| format!(r#"post.text : "nowhere{n}""#));
    terms.collect::<Vec<_>>().join(" OR ")
}

#[tokio::test]
async fn expensive_filter_is_refused_until_it_is_narrowed() {
    let app = TestApp::start().await;
    let (acme, path) = manager_with_scans(&app, 18_000).await;
    let fifty = searching(50);
    let names = vec![r#"name : "x""#; 40].join(" OR ");
    let fifty_others =
        (0..49).map(|n| format!(r#"updateTime != "2026-11-{:02}T00:00:00Z""#, n % 28 + 1));
    let others = fifty_others.collect::<Vec<_>>().join(" AND ");
    for (filter, order) in [
        (fifty.as_str(), ""),
        (names.as_str(), ""),
        (others.as_str(), "post.text, post.title"),
        (fifty.as_str(), "createTime asc"),
    ] {
        for _ in 0..2 {
            let query = [("filter", filter), ("orderBy", order)];
            let answer = acme.get_with(&path, &query).await;
            let told = (answer.status, answer.details());
            assert_eq!(told, (400, vec![("filter", "too_costly")]), "{filter}");
            let message = answer.body["message"].as_str().unwrap();
            assert!(message.contains("createTime >"), "{message}");
        }
    }
    // A search for nearly as many words over the last ten seconds of Scans is accepted.
    let newest = acme.get_with(&path, &[("pageSize", "1")]).await;
    let newest = newest.body["scans"][0]["createTime"].as_str().unwrap();
    let since: domain::Timestamp = newest.parse().unwrap();
    let since = since.minus(Duration::from_secs(10));
    let narrowed = format!(r#"createTime > "{since}" AND ({})"#, searching(49));
    let answer = search(&acme, &path, &narrowed).await;
    assert_eq!((answer.status, answer.body), (200, json!({"scans": []})));
    // Listing all Managers of the Namespace does not bypass it.
    let (parent, _) = path.split_once("/managers/").unwrap();
    let all = format!("{parent}/managers/-/scans");
    let answer = acme.get_with(&all, &[("filter", &fifty)]).await;
    assert_eq!(answer.details(), [("filter", "too_costly")]);
    // Polling still works, from the oldest Scan too.
    for filter in ["", r#"createTime > "2020-01-01T00:00:00Z""#] {
        for order in ["createTime asc", "name desc"] {
            let query = [("filter", filter), ("orderBy", order), ("pageSize", "37")];
            assert_eq!(acme.get_with(&path, &query).await.status, 200, "{filter}");
        }
    }
}

#[tokio::test]
async fn search_costs_points_in_proportion_to_rows_read() {
    let app = TestApp::start_with(|config| config.gateway.rate_limit_per_minute = 600).await;
    let (acme, path) = manager_with_scans(&app, 10_000).await;
    let left = |answer: &Answer| answer.number("x-ratelimit-remaining");
    let before = acme.get(&path).await;
    let polled = acme.get(&path).await;
    assert_eq!(left(&before) - left(&polled), 1);
    let searched = search(&acme, &path, &searching(1)).await;
    assert_eq!(searched.status, 200, "{}", searched.body);
    assert!(left(&polled) - left(&searched) > 20);
    // A search without enough points is refused, and polling is not.
    let mut refused = searched;
    while refused.status == 200 {
        refused = search(&acme, &path, &searching(1)).await;
    }
    assert_eq!(refused.status, 429, "{}", refused.body);
    assert!(left(&refused) > 0);
    assert_eq!(acme.get(&path).await.status, 200);
}

#[tokio::test]
async fn third_concurrent_expensive_read_of_an_account_is_refused() {
    let app = TestApp::start().await;
    let (acme, path) = manager_with_scans(&app, 10_000).await;
    let second = app.account("acme").await;
    let mut conn = app.database.connect().await;
    let now = domain::Timestamp::now();
    let account = keys::ensure_account(&mut conn, "acme", now).await.unwrap();
    // The database sees two reads of another replica.
    let mut reading = [app.database.connect().await, app.database.connect().await];
    for conn in &mut reading {
        reads::begin(conn, TIMEOUT).await.unwrap();
        assert!(reads::take_slot(conn, account).await.unwrap());
    }
    let filter = searching(1);
    for client in [&acme, &second] {
        let answer = search(client, &path, &filter).await;
        assert_eq!(answer.status, 429, "{}", answer.body);
        assert_eq!(answer.headers["retry-after"], "1");
    }
    // Cheap reads still work, and so do other accounts.
    assert_eq!(acme.get(&path).await.status, 200);
    let few = format!(r#"createTime > "2099-01-01T00:00:00Z" AND {filter}"#);
    assert_eq!(search(&acme, &path, &few).await.status, 200);
    reads::begin(&mut conn, TIMEOUT).await.unwrap();
    let another = Id::generate();
    assert!(reads::take_slot(&mut conn, another).await.unwrap());
    let ended: Result<(), store::Error> = keyed::end(&mut reading[0], Ok(())).await;
    ended.unwrap();
    assert_eq!(search(&acme, &path, &filter).await.status, 200);
}

/// The estimate is low, but the statement waits for a lock.
#[tokio::test]
async fn slow_list_is_cut_off_and_delays_no_one_else() {
    let app = TestApp::start_with(|config| config.database.max_connections = 4).await;
    let (acme, path) = manager_with_scans(&app, 10).await;
    let globex = app.account("globex").await;
    let mut conn = app.database.connect().await;
    let cut_off: Result<(), store::Error> = conn
        .transaction(async |conn: &mut AsyncPgConnection| {
            diesel_async::SimpleAsyncConnection::batch_execute(conn, "LOCK TABLE posts").await?;
            let filter = searching(1);
            let reads = (0..10).map(|_| {
                let (acme, path, filter) = (&acme, &path, &filter);
                let shape =
                    move |request: reqwest::RequestBuilder| request.query(&[("filter", filter)]);
                async move { acme.send(Method::GET, path, shape).await }
            });
            let mut reads = std::pin::pin!(futures::future::join_all(reads));
            let mut others = 0;
            let answers = loop {
                tokio::select! {
                    answers = &mut reads => break answers,
                    other = globex.get("/v1/namespaces") => {
                        assert_eq!(other.status, 200, "{}", other.body);
                        others += 1;
                    }
                }
            };
            assert!(others > 0);
            let told = answers.iter().map(|answer| answer.status);
            let cut_off = told.clone().filter(|status| *status == 503).count();
            // The others waited in vain for their account's share of connections or memory.
            let waited = told.filter(|status| *status == 429).count();
            assert!(cut_off > 0 && cut_off + waited == 10, "{cut_off} {waited}");
            for answer in answers {
                assert!(answer.headers.contains_key("retry-after"));
                let message = answer.body["message"].as_str().unwrap();
                assert!(!message.contains("wait to be read"), "{message}");
            }
            Ok(())
        })
        .await;
    cut_off.unwrap();
    assert_eq!(search(&acme, &path, &searching(1)).await.status, 200);
}

/// Returns a Manager that watches 100 feeds, each with 400 hours of statistics.
async fn manager_with_feeds(app: &TestApp, client: &Client, namespace: &str) -> String {
    let manager = client.manager(namespace).await;
    let (namespace, id) = (last_id(namespace).to_uuid(), last_id(&manager).to_uuid());
    let mut conn = app.database.connect().await;
    let rows = format!(
        "INSERT INTO feeds (name, platform, watched, next_poll_time, create_time) \
             SELECT 'hackernews:' || n, 'hackernews', true, now(), now() FROM generate_series(1, 100) AS n; \
         INSERT INTO feed_watchers (feed, namespace_id, manager_id) \
             SELECT name, '{namespace}', '{id}' FROM feeds WHERE platform = 'hackernews'; \
         INSERT INTO feed_stats (feed, interval_seconds, time, posts) \
             SELECT w.feed, 3600, date_trunc('hour', now()) - hours * interval '1 hour', 1 \
             FROM feed_watchers AS w CROSS JOIN generate_series(1, 400) AS hours;"
    );
    conn.batch_execute(&rows).await.unwrap();
    manager
}

#[tokio::test]
async fn reads_cost_points_in_proportion_to_rows_read() {
    let app = TestApp::start_with(|config| config.gateway.rate_limit_per_minute = 1_200).await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = manager_with_feeds(&app, &acme, &namespace).await;
    for _ in 0..30 {
        acme.connection(&namespace).await;
    }
    let start = domain::Timestamp::now().minus(Duration::from_hours(450));
    let start = start.to_string();
    let span = [("startTime", start.as_str())];
    let all = format!("/v1/{namespace}/connections/-/deliveries");
    let reads = [
        ("/v1/caller".to_owned(), &[][..]),
        (format!("/v1/{manager}/stats"), &span[..]),
        (format!("/v1/{namespace}/stats"), &span[..]),
        (format!("/v1/{manager}/feeds"), &[][..]),
        (all.clone(), &[("pageSize", "1")][..]),
        (all, &[("pageSize", "100")][..]),
    ];
    // A lease of points that ends between two reads changes what is left by more than their cost.
    let mut seen = Vec::new();
    while seen.len() < 5 && seen.last() != Some(&vec![3, 3, 6, 1, 2]) {
        let mut left = Vec::new();
        for (path, query) in &reads {
            let answer = acme.get_with(path, query).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
            left.push(answer.number("x-ratelimit-remaining"));
        }
        seen.push(left.windows(2).map(|pair| pair[0] - pair[1]).collect());
    }
    assert_eq!(seen.last(), Some(&vec![3, 3, 6, 1, 2]), "{seen:?}");
}

/// The reads wait for a lock.
#[tokio::test]
async fn slow_reads_are_cut_off() {
    let app = TestApp::start_with(|config| config.database.max_connections = 20).await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = manager_with_feeds(&app, &acme, &namespace).await;
    acme.connection(&namespace).await;
    let mut locks = app.database.connect().await;
    let lock = "BEGIN; LOCK TABLE feed_watchers, deliveries, scans";
    locks.batch_execute(lock).await.unwrap();
    // Waits as long as other statements of the gateway may.
    let mut other = app.database.connect().await;
    let other = other.batch_execute(
        "SET lock_timeout = '10s'; SET statement_timeout = '30s'; SELECT FROM feed_watchers",
    );
    let start = domain::Timestamp::now().minus(Duration::from_hours(1));
    let paths = [
        "/v1/caller".to_owned(),
        format!("/v1/{manager}/stats?startTime={start}"),
        format!("/v1/{namespace}/stats?startTime={start}"),
        format!("/v1/{manager}/feeds"),
        format!("/v1/{namespace}/connections/-/deliveries"),
        format!("/v1/{namespace}/managers/-/scans"),
    ];
    let reads = futures::future::join_all(paths.iter().map(|path| acme.get(path)));
    tokio::select! {
        ended = other => panic!("the reads wait as long: {ended:?}"),
        answers = reads => {
            for answer in answers {
                assert_eq!(answer.status, 503, "{}", answer.body);
                assert_eq!(answer.headers["retry-after"], "1");
            }
        }
    }
}

#[tokio::test]
async fn compressed_bodies_are_refused() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    for coding in [
        "gzip",
        "br",
        "deflate",
        "zstd",
        "gzip, gzip",
        "identity, gzip",
        "nonsense",
    ] {
        let answer = acme
            .send(Method::POST, "/v1/namespaces", |request| {
                request
                    .header("content-encoding", coding)
                    .header("content-type", "application/json")
                    .body(vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0])
            })
            .await;
        assert_eq!(answer.status, 415, "{coding}");
    }
}

/// Two hundred connections that send their heads slowly, and a hundred that send their bodies slowly.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_clients_do_not_block_others() {
    let bound = Duration::from_secs(2);
    let app = TestApp::start_with(|config| {
        config.gateway.head_timeout = bound;
        config.gateway.body_timeout = bound;
        config.gateway.keep_alive = bound;
    })
    .await;
    let key = app.owner_key("acme").await;
    let host = app.base.strip_prefix("http://").unwrap().to_owned();
    let client = Client::new(&app.base, Some(key.clone()));
    assert_eq!(client.get("/v1/namespaces").await.status, 200);

    let mut dripping = Vec::new();
    for n in 0..300 {
        let (host, key) = (host.clone(), key.clone());
        dripping.push(tokio::spawn(async move {
            let mut stream = TcpStream::connect(&host).await.unwrap();
            if n % 3 == 0 {
                let head = format!(
                    "POST /v1/namespaces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
                     content-type: application/json\r\ncontent-length: 9000\r\n\r\n"
                );
                stream.write_all(head.as_bytes()).await.unwrap();
            } else {
                stream.write_all(b"GET / HTTP/1.1\r\nx: ").await.unwrap();
            }
            let (mut read, mut write) = stream.split();
            let drip = async {
                loop {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    if write.write_all(b" ").await.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
            };
            let mut answer = Vec::new();
            tokio::select! {
                () = drip => {}
                // A reset ends it as well.
                _ = read.read_to_end(&mut answer) => {}
            }
        }));
    }
    let mut served = 0;
    // Without a limit for slow clients this does not end within the runner's limit.
    while dripping.iter().any(|one| !one.is_finished()) {
        assert_eq!(client.get("/v1/namespaces").await.status, 200);
        served += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(served > 10, "{served}");
    eventually("all is as before", async || {
        client.get("/v1/namespaces").await.status == 200
    })
    .await;
}
