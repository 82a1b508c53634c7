//! Items that filters keep. Each table lists a filter and the items that it keeps, by one letter each.

use domain::{
    Timestamp,
    list::{MANAGER_FIELDS, SCAN_FIELDS},
};
use store::{managers, scans};
use test_support::{instructions, post};

use crate::support::{feed, list_query, matched, new_scan, run, start};

#[tokio::test]
async fn every_field_of_a_scan_filters() {
    let mut at = start().await;
    let manager = at
        .fixture
        .manager(&mut at.conn, &instructions("a"), &[])
        .await;
    // The last letter of an id names its post below.
    let titles = [
        ("a", Some("Über Rust")),
        ("b", Some("it's 100% \"quoted\" \\ back_slash")),
        ("c", None),
        ("d", Some("")),
        ("e", Some("'); DROP TABLE scans; --")),
        ("f", Some("$1 rust")),
    ];
    let posts: Vec<_> = titles
        .iter()
        .zip(0_i64..)
        .map(|((id, title), n)| {
            let mut one = post(&format!("forum:{id}"), "");
            one.title = title.map(str::to_owned);
            one.time = Timestamp::from_micros(1_700_000_000_000_000 + n).unwrap();
            if *id == "c" {
                one.subforum = None;
            }
            one
        })
        .collect();
    let matches: Vec<_> = posts
        .iter()
        .zip(0_u8..)
        .map(|(post, n)| {
            let mut one = new_scan(manager, post);
            one.matched = matched(f64::from(n) / 2.0);
            one
        })
        .collect();
    let made = scans::record(&mut at.conn, &feed(), &matches, Timestamp::now())
        .await
        .unwrap();
    run(
        &mut at.conn,
        format!(
            "UPDATE scans SET value = false WHERE id = '{}'",
            made[0].scan.to_uuid()
        ),
    )
    .await;

    let third = made[2].scan.time();
    let table: Vec<(String, &str)> = [
        ("", "abcdef"),
        // `:` finds text in any case and any script, and characters that are special in LIKE or regular expressions
        // have no effect.
        (r#"post.title : "RUST""#, "af"),
        (r#"post.title : "über""#, "a"),
        (r#"post.title : "ÜBER""#, "a"),
        (r#"post.title : "100%""#, "b"),
        (r#"post.title : "%""#, "b"),
        (r#"post.title : "_""#, "b"),
        (r#"post.title : "k_s""#, "b"),
        (r#"post.title : ".*""#, ""),
        (r#"post.title : """#, "abcdef"),
        (r#"NOT post.title : "rust""#, "bcde"),
        // Literals are literal.
        (r#"post.title = "it's 100% \"quoted\" \\ back_slash""#, "b"),
        (r#"post.title = "'); DROP TABLE scans; --""#, "e"),
        (r#"post.title : "'""#, "be"),
        (r#"post.title : "\\""#, "b"),
        (r#"post.title = "$1 rust""#, "f"),
        (r#"post.title = "über rust""#, ""),
        // A missing title equals an empty one.
        (r#"post.title = """#, "cd"),
        (r#"post.title != """#, "abef"),
        (r#"-post.title = """#, "abef"),
        (r#"post.title < "A""#, "cdef"),
        (r#"post.title >= "Ü""#, "a"),
        (r#"post.subforum.id = "s""#, "abdef"),
        (r#"post.subforum.id != "s""#, "c"),
        // AND, OR, parentheses.
        (r#"post.title : "rust" AND post.title : "über""#, "a"),
        (
            r#"post.title : "rust" AND post.id = "forum:a" OR post.id = "forum:b""#,
            "a",
        ),
        (
            r#"(post.id = "forum:a" OR post.id = "forum:b") AND NOT value = true"#,
            "a",
        ),
        (
            r#"NOT post.id = "forum:a" AND -post.id = "forum:b""#,
            "cdef",
        ),
        // Other kinds.
        ("value = false", "a"),
        ("value != false", "bcdef"),
        ("match.score > 1", "def"),
        ("match.score <= 0.5", "ab"),
        ("match.score = -1", ""),
        ("NOT match.score >= 2", "abcd"),
        ("post.type = FORUM_LINK", "abcdef"),
        ("post.type != FORUM_LINK", ""),
        (r#"post.time > "2023-11-14T22:13:20.000003Z""#, "ef"),
        (r#"post.time <= "2023-11-14T23:13:20.000001+01:00""#, "ab"),
    ]
    .into_iter()
    .map(|(filter, kept)| (filter.to_owned(), kept))
    .chain([
        (format!("createTime > \"{third}\""), "def"),
        (format!("createTime = \"{third}\""), "c"),
        (format!("name = \"{}\"", made[4]), "e"),
        (format!("name : \"{}\"", made[4].scan), "e"),
    ])
    .collect();
    for (filter, kept) in table {
        let list = list_query(SCAN_FIELDS, 100, None, &filter, "createTime");
        let page = scans::list(&mut at.conn, manager, &list)
            .await
            .unwrap_or_else(|error| panic!("`{filter}`: {error}"));
        let found: String = page
            .items
            .iter()
            .filter_map(|scan| scan.post.id.chars().last())
            .collect();
        assert_eq!(found, kept, "`{filter}`");
    }
}

#[tokio::test]
async fn every_field_of_a_manager_filters() {
    let mut at = start().await;
    let waiting = at
        .fixture
        .manager(&mut at.conn, &instructions("a"), &[])
        .await;
    let applied = at
        .fixture
        .applied_manager(&mut at.conn, &instructions("a"), &[])
        .await;
    run(
        &mut at.conn,
        format!(
            "UPDATE managers SET enable = false WHERE id = '{}'",
            waiting.manager.to_uuid()
        ),
    )
    .await;
    let table = [
        ("state = APPLIED", vec![applied]),
        ("state != APPLIED", vec![waiting]),
        ("enable = true", vec![applied]),
        ("NOT enable = true", vec![waiting]),
        ("type = FEED_MANAGER", vec![waiting, applied]),
        // A search folds the text; a comparison in the same clause uses the original.
        (
            r#"nickname : "none" OR nickname = "watch""#,
            vec![waiting, applied],
        ),
        ("type != FEED_MANAGER", vec![]),
        (
            "source.type = NETWORK OR mode = MANUAL",
            vec![waiting, applied],
        ),
        // A Manager that was never applied has no time: no comparison is true for it, and each negation is.
        (r#"applyTime > "2020-01-01T00:00:00Z""#, vec![applied]),
        (r#"applyTime < "2020-01-01T00:00:00Z""#, vec![]),
        (r#"applyTime != "2020-01-01T00:00:00Z""#, vec![applied]),
        (r#"NOT applyTime > "2020-01-01T00:00:00Z""#, vec![waiting]),
    ];
    for (filter, kept) in table {
        let list = list_query(MANAGER_FIELDS, 100, None, filter, "createTime");
        let page = managers::list(&mut at.conn, at.fixture.namespace, &list)
            .await
            .unwrap();
        let found: Vec<_> = page.items.iter().map(|manager| manager.name).collect();
        assert_eq!(found, kept, "`{filter}`");
    }
}
