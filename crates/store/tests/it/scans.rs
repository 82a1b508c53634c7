use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use domain::{Id, ManagerName, Post, Scan, ScanName, Timestamp, list::SCAN_FIELDS};
use store::{AsyncConnection, AsyncPgConnection, Pool, fair::Round, scans};
use test_support::{instructions, post};
use uuid::Uuid;

use crate::support::{
    Start, feed, list_query, matched, new_scan, number, record, run, start, walk,
};

async fn with_managers(count: usize) -> (Start, Vec<ManagerName>) {
    let mut at = start().await;
    let mut managers = Vec::new();
    for _ in 0..count {
        managers.push(
            at.fixture
                .manager(&mut at.conn, &instructions("a"), &[])
                .await,
        );
    }
    (at, managers)
}

async fn all(conn: &mut AsyncPgConnection, manager: ManagerName, filter: &str) -> Vec<Scan> {
    walk(async |token| {
        let list = list_query(SCAN_FIELDS, 100, token, filter, "createTime");
        scans::list(conn, manager, &list).await.unwrap()
    })
    .await
}

fn names(scans: &[Scan]) -> Vec<ScanName> {
    scans.iter().map(|scan| scan.name).collect()
}

const POSTS: &str = "SELECT count(*) AS number FROM posts";

#[tokio::test]
async fn a_post_is_stored_once_for_all_managers() {
    let (mut at, managers) = with_managers(3).await;
    let plain = post("forum:1", "One");
    let bare = Post {
        title: None,
        text: None,
        subforum: None,
        post_type: domain::PostType::NetworkPost,
        ..post("forum:2", "")
    };
    let mut matches = Vec::new();
    for manager in &managers {
        for post in [&plain, &bare, &plain] {
            let mut one = new_scan(*manager, post);
            one.matched = matched(0.25);
            matches.push(one);
        }
    }
    let made = scans::record(&mut at.conn, &feed(), &matches, Timestamp::now())
        .await
        .unwrap();
    assert_eq!(made.len(), 6);
    assert_eq!(number(&mut at.conn, POSTS).await, 2);
    for (name, post) in made.iter().zip([&plain, &bare].into_iter().cycle()) {
        let scan = scans::get(&mut at.conn, *name).await.unwrap().unwrap();
        assert_eq!(&scan.post, post);
        assert_eq!(
            scan.create_time,
            name.scan.time(),
            "the id carries the time"
        );
        assert_eq!((scan.value, scan.matched), (true, matched(0.25)));
    }
    let of_nobody = ScanName {
        namespace: Id::generate(),
        ..made[0]
    };
    assert_eq!(scans::get(&mut at.conn, of_nobody).await.unwrap(), None);
    let strange = ScanName {
        scan: Id::from_uuid(uuid::Uuid::max()),
        ..made[0]
    };
    assert_eq!(scans::get(&mut at.conn, strange).await.unwrap(), None);
}

#[tokio::test]
async fn a_scan_is_never_dated_ahead_of_the_database() {
    let (mut at, managers) = with_managers(1).await;
    let clocks = "SELECT count(*) AS number FROM scan_clocks WHERE last_time > 'epoch'";
    assert_eq!(
        number(&mut at.conn, clocks).await,
        0,
        "dated by who made the Manager"
    );
    record(&mut at.conn, managers[0], &[post("forum:1", "One")]).await;
    let ahead = "SELECT count(*) AS number FROM scans WHERE create_time > clock_timestamp()";
    assert_eq!(number(&mut at.conn, ahead).await, 0);
}

#[tokio::test]
async fn times_ascend_in_the_order_of_the_matches() {
    let (mut at, managers) = with_managers(2).await;
    let posts: Vec<Post> = (0..30)
        .map(|n| post(&format!("forum:{}", n * 7 % 30), "t"))
        .collect();
    let mut expected: Vec<ScanName> = Vec::new();
    for some in posts.chunks(10) {
        expected.extend(record(&mut at.conn, managers[0], some).await);
        record(&mut at.conn, managers[1], some).await;
    }
    let found = all(&mut at.conn, managers[0], "").await;
    assert_eq!(names(&found), expected);
    assert!(found.is_sorted_by(|a, b| a.create_time < b.create_time));
    let ids: Vec<&str> = found.iter().map(|scan| scan.post.id.as_str()).collect();
    assert_eq!(
        ids,
        posts
            .iter()
            .map(|post| post.id.as_str())
            .collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn a_manager_gets_no_second_scan_of_a_post() {
    let (mut at, managers) = with_managers(2).await;
    let posts = [post("forum:1", "One"), post("forum:2", "Two")];
    assert_eq!(
        record(&mut at.conn, managers[0], &posts[..1]).await.len(),
        1
    );
    assert_eq!(record(&mut at.conn, managers[0], &posts).await.len(), 1);
    assert!(record(&mut at.conn, managers[0], &posts).await.is_empty());
    assert_eq!(record(&mut at.conn, managers[1], &posts).await.len(), 2);
    assert_eq!(number(&mut at.conn, POSTS).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn racing_polls_make_each_scan_once_and_never_deadlock() {
    let (mut at, managers) = with_managers(6).await;
    for round in 0..60 {
        let posts: Vec<Post> = (0..6)
            .map(|n| post(&format!("forum:{round}-{n}"), "t"))
            .collect();
        let racer = |reversed: bool| {
            let (pool, posts, managers) = (at.database.pool(), posts.clone(), managers.clone());
            tokio::spawn(async move {
                let mut matches: Vec<_> = managers
                    .iter()
                    .flat_map(|manager| posts.iter().map(|post| new_scan(*manager, post)))
                    .collect();
                if reversed {
                    matches.reverse();
                }
                let mut conn = pool.get().await.unwrap();
                conn.transaction(async |conn| {
                    scans::record(conn, &feed(), &matches, Timestamp::now()).await
                })
                .await
                .unwrap()
            })
        };
        let (one, two) = (racer(false), racer(true));
        let made = one.await.unwrap().len() + two.await.unwrap().len();
        assert_eq!(made, 36, "round {round}");
    }
    assert_eq!(number(&mut at.conn, POSTS).await, 360);
    let pairs = "SELECT count(DISTINCT (manager_id, post_id)) AS number FROM scans";
    assert_eq!(number(&mut at.conn, pairs).await, 60 * 36);
}

/// Records posts for all Managers until it is stopped.
async fn write_on(pool: Pool, writer: usize, managers: Vec<ManagerName>, stop: Arc<AtomicBool>) {
    let mut conn = pool.get().await.unwrap();
    for round in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let posts: Vec<Post> = (0..2)
            .map(|n| post(&format!("forum:{writer}-{round}-{n}"), "t"))
            .collect();
        let mut matches: Vec<_> = posts
            .iter()
            .flat_map(|post| managers.iter().map(move |manager| new_scan(*manager, post)))
            .collect();
        let middle = (writer + round) % matches.len();
        matches.rotate_left(middle);
        conn.transaction(async |conn| {
            scans::record(conn, &feed(), &matches, Timestamp::now()).await?;
            // As in a poll, the clocks stay locked for a while after this.
            tokio::time::sleep(Duration::from_millis(writer as u64 % 3)).await;
            Ok::<_, store::Error>(())
        })
        .await
        .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_client_that_follows_create_time_misses_nothing() {
    let (mut at, managers) = with_managers(3).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..7)
        .map(|writer| {
            let pool = at.database.pool();
            tokio::spawn(write_on(pool, writer, managers.clone(), Arc::clone(&stop)))
        })
        .collect();

    let mut seen: Vec<Vec<ScanName>> = vec![Vec::new(); managers.len()];
    let mut last_round = false;
    let mut writers = Some(writers);
    while !last_round {
        // Too few would prove nothing.
        if seen.iter().all(|names| names.len() > 50)
            && let Some(writers) = writers.take()
        {
            stop.store(true, Ordering::Relaxed);
            for writer in writers {
                writer.await.unwrap();
            }
            last_round = true;
        }
        for (manager, seen) in managers.iter().zip(&mut seen) {
            let last = seen
                .last()
                .map_or(Timestamp::UNIX_EPOCH, |name| name.scan.time());
            let filter = format!("createTime > \"{last}\"");
            seen.extend(names(&all(&mut at.conn, *manager, &filter).await));
        }
    }
    for (manager, seen) in managers.iter().zip(seen) {
        let stored = names(&all(&mut at.conn, *manager, "").await);
        assert!(stored.is_sorted_by(|a, b| a.scan.time() < b.scan.time()));
        assert!(seen == stored, "saw {} of {}", seen.len(), stored.len());
    }
}

#[tokio::test]
async fn a_deleted_manager_gets_no_scan() {
    let (mut at, managers) = with_managers(2).await;
    run(
        &mut at.conn,
        format!(
            "DELETE FROM managers WHERE id = '{}'",
            managers[0].manager.to_uuid()
        ),
    )
    .await;
    let one = post("forum:1", "One");
    let matches = managers
        .iter()
        .map(|manager| new_scan(*manager, &one))
        .collect::<Vec<_>>();
    let made = scans::record(&mut at.conn, &feed(), &matches, Timestamp::now())
        .await
        .unwrap();
    assert_eq!(made.len(), 1);
    assert_eq!(made[0].manager_name(), managers[1]);
    assert!(
        record(&mut at.conn, managers[0], &[post("forum:2", "Two")])
            .await
            .is_empty()
    );
}

#[tokio::test]
async fn nul_characters_do_not_fail_a_poll() {
    let (mut at, managers) = with_managers(1).await;
    let clean = post("forum:1", "One");
    let mut odd = clean.clone();
    odd.id = "forum:\u{0}1".to_owned();
    odd.title = Some("O\0ne".to_owned());
    odd.text = Some("text\0".to_owned());
    odd.user.name.insert(0, '\0');
    odd.subforum.as_mut().unwrap().id.push('\0');
    let mut one = new_scan(managers[0], &odd);
    one.matched.terms = vec!["ru\0st".to_owned()];
    let made = scans::record(&mut at.conn, &feed(), &[one], Timestamp::now())
        .await
        .unwrap();
    let scan = scans::get(&mut at.conn, made[0]).await.unwrap().unwrap();
    assert_eq!((scan.post, scan.matched), (clean.clone(), matched(1.0)));
    // The same post, with or without the NUL.
    assert!(
        record(&mut at.conn, managers[0], &[clean, odd])
            .await
            .is_empty()
    );
}

#[tokio::test]
async fn a_burst_for_many_managers_is_one_transaction() {
    let (mut at, managers) = with_managers(5).await;
    // More values than one statement may have parameters.
    let posts: Vec<Post> = (0..4_200)
        .map(|n| post(&format!("forum:{n}"), "t"))
        .collect();
    let matches: Vec<_> = managers
        .iter()
        .flat_map(|manager| posts.iter().map(|post| new_scan(*manager, post)))
        .collect();
    let made = scans::record(&mut at.conn, &feed(), &matches, Timestamp::now())
        .await
        .unwrap();
    assert_eq!(made.iter().collect::<BTreeSet<_>>().len(), 21_000);
    assert_eq!(number(&mut at.conn, POSTS).await, 4_200);
}

#[tokio::test]
async fn overdue_scans_are_shared() {
    let (mut at, managers) = with_managers(1).await;
    let posts: Vec<Post> = (0..4).map(|n| post(&format!("forum:{n}"), "t")).collect();
    let made = record(&mut at.conn, managers[0], &posts).await;
    let mut others = [at.database.connect().await, at.database.connect().await];
    for conn in &mut others {
        run(conn, "BEGIN").await;
    }
    let [first, second] = &mut others;
    assert!(scans::are_queued(&mut at.conn, 4).await.unwrap());
    assert!(!scans::are_queued(&mut at.conn, 5).await.unwrap());
    let replica = Uuid::new_v4();
    let (at_once, minute) = (Duration::ZERO, Duration::from_mins(1));
    let overdue = async |conn: &mut AsyncPgConnection, age, except: &[ScanName], limit| {
        let overdue = scans::Overdue {
            age,
            except,
            replica,
            take_over: true,
        };
        let due = scans::overdue(conn, &overdue, &mut Round::default(), limit).await;
        let due = due.unwrap().into_iter().map(|one| one.item);
        due.collect::<Vec<ScanName>>()
    };
    assert_eq!(overdue(first, at_once, &made[..1], 2).await, made[1..3]);
    // Rows that another transaction has locked belong to it.
    assert_eq!(overdue(second, at_once, &[], 10).await, [made[0], made[3]]);
    assert_eq!(overdue(&mut at.conn, at_once, &[], 10).await, []);
    // A dropped connection would keep its locks for a moment.
    for conn in &mut others {
        run(conn, "ROLLBACK").await;
    }

    // One is leased, by a replica that is not known to be alive, one is set aside.
    let leases = [
        (made[0], "NULL", "1 hour"),
        (made[1], "gen_random_uuid()", "0"),
    ];
    for (scan, holder, wait) in leases {
        let (kind, key) = (scans::FAN_OUT, scan.scan.to_uuid());
        let row = format!(
            "INSERT INTO leases (kind, key, leased_by, next_time) \
             VALUES ('{kind}', '{key}', {holder}, now() + interval '{wait}')"
        );
        run(&mut at.conn, row).await;
    }
    assert_eq!(overdue(&mut at.conn, at_once, &[], 10).await, made[1..]);
    run(&mut at.conn, "DELETE FROM leases").await;

    assert_eq!(overdue(&mut at.conn, minute, &[], 10).await, []);
    // The database's clock was an hour ahead when these were created.
    run(
        &mut at.conn,
        "UPDATE scan_clocks SET last_time = now() + interval '1 hour'",
    )
    .await;
    let ahead = record(&mut at.conn, managers[0], &[post("forum:ahead", "t")]).await;
    assert_eq!(overdue(&mut at.conn, minute, &[], 10).await, ahead);
    run(&mut at.conn, "UPDATE scans SET fanned_out = true").await;
    assert_eq!(overdue(&mut at.conn, at_once, &[], 10).await, []);
}

#[tokio::test]
async fn excerpts_have_a_part_of_each_long_text_and_no_spans() {
    let (mut at, managers) = with_managers(2).await;
    let mut long = post("forum:long", &"é".repeat(50));
    long.text = Some("ü".repeat(5_000));
    long.url = format!("https://forum.example/{}", "a".repeat(2_000));
    let short = post("forum:short", "t");
    let mut made = record(&mut at.conn, managers[0], &[long, short.clone()]).await;
    made.extend(record(&mut at.conn, managers[1], &[short]).await);
    let explained = "UPDATE scans SET matched = matched || jsonb_build_object( \
            'terms', (SELECT jsonb_agg(n::text) FROM generate_series(1, 50) AS n), \
            'spans', '[{\"field\": \"text\", \"start\": 0, \"end\": 1, \"term\": \"1\"}]'::jsonb)";
    assert_eq!(run(&mut at.conn, explained).await, 3);
    let gone = ScanName {
        scan: Id::generate(),
        ..made[0]
    };
    let asked = [made[2], gone, made[0], made[1]];
    let excerpts = scans::excerpts(&mut at.conn, &asked, 10).await.unwrap();
    let found: Vec<ScanName> = excerpts.iter().map(|one| one.name).collect();
    assert_eq!(found, [made[2], made[0], made[1]]);
    let long = &excerpts[1].post;
    assert_eq!(long.title.as_deref(), Some("éééééééééé"));
    assert_eq!(long.text.as_deref(), Some("üüüüüüüüüü"));
    assert_eq!(long.url, "", "no mail has a link of this length");
    let whole = scans::get(&mut at.conn, made[1]).await.unwrap().unwrap();
    let (short, post) = (&excerpts[2].post, &whole.post);
    assert_eq!(
        (&short.title, &short.text, &short.url),
        (&post.title, &post.text, &post.url)
    );
    assert_eq!(short.user.name, post.user.name);
    let place = |post: &Post| post.subforum.as_ref().unwrap().name.clone();
    assert_eq!(place(short), place(post));
    let matched = &excerpts[0].matched;
    assert_eq!(matched.terms, whole.matched.terms[..10]);
    assert!(matched.spans.is_empty());
}
