//! A client that polls by createTime gets every Scan once, in order, regardless of how many processes write and
//! when they die.

use std::{
    collections::HashSet,
    sync::Arc,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use domain::{Id, ManagerName, Match, Timestamp};
use store::{AsyncConnection, AsyncPgConnection, scans};
use test_support::post;
use tokio::task::JoinSet;

use crate::app::TestApp;

const WRITERS: usize = 8;
const SPAN: Duration = Duration::from_secs(10);

/// Writes one to four Scans per transaction until the end. Now and then its process dies between insert and commit.
/// Returns the names of the committed Scans.
async fn write(
    url: String,
    manager: ManagerName,
    writer: usize,
    end: Instant,
    deaths: Arc<AtomicUsize>,
) -> Vec<String> {
    let feed = "hackernews:newest".parse().unwrap();
    let mut conn = AsyncPgConnection::establish(&url).await.unwrap();
    let mut names = Vec::new();
    let mut round = 0;
    // On a slow machine, long enough to die twice.
    while Instant::now() < end || round < 40 {
        round += 1;
        let posts: Vec<_> = (0..round % 4 + 1)
            .map(|n| post(&format!("forum:{writer}-{round}-{n}"), "found"))
            .collect();
        let matches: Vec<_> = posts
            .iter()
            .map(|post| scans::NewScan {
                manager,
                post,
                matched: Match {
                    score: 1.0,
                    terms: vec!["found".to_owned()],
                    ..Match::default()
                },
            })
            .collect();
        let dies = round % 17 == writer;
        let mut made = Vec::new();
        let writing = conn.transaction(async |conn| {
            made = scans::record(conn, &feed, &matches, Timestamp::now()).await?;
            if dies || round % 5 == 0 {
                // Its Scans are inserted but not visible yet.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            if dies {
                // The connection is cut without notice, and the server detects it.
                std::future::pending::<()>().await;
            }
            Ok::<_, store::Error>(())
        });
        if dies {
            let cut = tokio::time::timeout(Duration::from_millis(60), writing).await;
            assert!(cut.is_err());
            deaths.fetch_add(1, Ordering::Relaxed);
            conn = AsyncPgConnection::establish(&url).await.unwrap();
        } else {
            writing.await.unwrap();
            names.extend(made.iter().map(ToString::to_string));
        }
    }
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn polling_loses_nothing_with_eight_writers() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = acme.manager(&namespace).await;
    let path = format!("/v1/{manager}/scans");
    let name: ManagerName = manager.parse().unwrap();

    let end = Instant::now() + SPAN;
    let deaths = Arc::new(AtomicUsize::new(0));
    let done = Arc::new(AtomicBool::new(false));
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let url = app.database.url().to_owned();
        writers.spawn(write(url, name, writer, end, Arc::clone(&deaths)));
    }
    let poller = tokio::spawn({
        let done = Arc::clone(&done);
        async move {
            let (mut last, mut seen) = (String::new(), Vec::new());
            loop {
                // Read before the page: one more empty page after the last commit ends the loop.
                let ending = done.load(Ordering::SeqCst);
                let filter = format!("createTime > \"{last}\"");
                let mut query = vec![("orderBy", "createTime asc"), ("pageSize", "20")];
                if !last.is_empty() {
                    query.push(("filter", &filter));
                }
                let page = acme.get_with(&path, &query).await;
                assert_eq!(page.status, 200, "{}", page.body);
                let scans = page.body["scans"].as_array().unwrap();
                if scans.is_empty() && ending {
                    return seen;
                }
                for scan in scans {
                    let time = scan["createTime"].as_str().unwrap();
                    assert!(time > last.as_str(), "{time} after {last}");
                    last = time.to_owned();
                    seen.push(scan["name"].as_str().unwrap().to_owned());
                }
            }
        }
    });

    let mut written = HashSet::new();
    while let Some(names) = writers.join_next().await {
        written.extend(names.unwrap());
    }
    done.store(true, Ordering::SeqCst);
    let seen = poller.await.unwrap();
    let distinct: HashSet<String> = seen.iter().cloned().collect();
    assert_eq!(distinct.len(), seen.len(), "seen twice");
    let missed: Vec<_> = written.difference(&distinct).collect();
    assert!(
        missed.is_empty(),
        "missed {} of {}: {missed:?}",
        missed.len(),
        written.len()
    );
    assert_eq!(distinct, written, "seen, though never committed");
    let deaths = deaths.load(Ordering::Relaxed);
    assert!(
        written.len() > 500 && deaths > WRITERS,
        "{} Scans, {deaths} deaths",
        written.len()
    );
    let ids: Vec<Id> = seen.iter().map(|name| crate::app::last_id(name)).collect();
    assert!(ids.is_sorted(), "names order as createTimes do");
}
