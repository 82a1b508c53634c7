//! The walk over stored posts that looks for those deleted at their source.

use std::time::Duration;

use store::erasure::{self, Stretch};
use test_support::{instructions, post};
use uuid::Uuid;

use crate::support::{Look, number, record, run, start};

#[tokio::test]
async fn many_steps_of_a_walk_take_one_read() {
    const POSTS: usize = 40;
    let mut at = start().await;
    let manager = at
        .fixture
        .applied_manager(&mut at.conn, &instructions("rust"), &[])
        .await;
    let conn = &mut at.conn;
    let posts: Vec<_> = (0..POSTS)
        .map(|n| post(&format!("forum:{n}"), "Rust"))
        .collect();
    record(conn, manager, &posts).await;
    let mut look = Look::of(Uuid::new_v4());
    let leased = erasure::lease(conn, "hackernews", &look.claim())
        .await
        .unwrap();
    let mut place = leased.items[0].item.clone();
    let (mut reads, mut walked) = (0, Vec::new());
    let mut ahead: Option<Stretch> = None;
    loop {
        let mut stretch = match ahead.take().filter(|ahead| ahead.goes_on_at(&place)) {
            Some(ahead) => ahead,
            None => {
                reads += 1;
                erasure::read(conn, "hackernews", &place).await.unwrap()
            }
        };
        let step = stretch.step(3);
        assert!(step.post_ids.len() <= 3);
        ahead = Some(stretch);
        walked.extend(step.post_ids);
        let Some(next) = step.next else { break };
        // A process that dies here continues at the same post.
        if walked.len() < POSTS {
            let again = erasure::read(conn, "hackernews", &next)
                .await
                .unwrap()
                .step(100);
            assert_eq!(again.post_ids.len(), POSTS - walked.len());
        }
        place = next;
    }
    let mut expected: Vec<_> = posts.iter().map(|post| post.id.clone()).collect();
    walked.sort();
    expected.sort();
    assert_eq!(walked, expected);
    assert_eq!(reads, 2, "one of Scans' posts, one of recent posts");
}

#[tokio::test]
async fn age_of_a_walk_counts_from_its_begin_to_its_end() {
    let mut at = start().await;
    let conn = &mut at.conn;
    run(
        conn,
        "INSERT INTO rechecks (platform, begin_time) \
         VALUES ('walks', now() - interval '3 hours'), ('rests', now() + interval '3 hours')",
    )
    .await;
    let mut ages = erasure::ages(conn).await.unwrap();
    ages.sort_by(|one, other| one.platform.cmp(&other.platform));
    let ages = ages.iter().map(|age| (age.seconds / 3_600.0).round());
    assert_eq!(ages.collect::<Vec<_>>(), [0.0, 3.0]);
}

#[tokio::test]
async fn a_walk_whose_last_step_is_set_aside_ends_and_keeps_its_crashes() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let mut look = Look::of(Uuid::new_v4());
    erasure::lease(conn, "lemmy", &look.claim()).await.unwrap();
    run(
        conn,
        "UPDATE rechecks SET stage = 'RECENT', crash_count = 3",
    )
    .await;
    let (rest, pass) = (Duration::from_secs(60), Duration::from_secs(3_600));
    erasure::set_aside(conn, "lemmy", look.replica, None, rest, pass)
        .await
        .unwrap();
    let ended = "SELECT count(*) AS number FROM rechecks WHERE stage = 'POSTS' AND begin_time > now() \
                 AND next_time > now() + interval '30 seconds' AND leased_by IS NULL AND crash_count = 4";
    assert_eq!(number(conn, ended).await, 1);
}
