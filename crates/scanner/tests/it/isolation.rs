//! Feeds of two accounts on one host: neither sees or replaces the content of the other's feed.

use std::time::Duration;

use domain::ManagerName;
use test_support::{Answer, Fixture, TestServer, eventually};

use crate::support::{World, watching};

/// A feed with one entry, whose id is on the requested host.
fn rss(host: &str, title: &str) -> Answer {
    let body = format!(
        "<rss version=\"2.0\"><channel><title>{title}</title><item><guid>http://{host}/1</guid>\
         <link>http://{host}/{title}</link><title>{title} kettle</title><pubDate>{}</pubDate></item>\
         <item><guid isPermaLink=\"false\">2</guid><title>{title} second kettle</title><pubDate>{0}</pubDate></item>\
         </channel></rss>",
        domain::Timestamp::now().to_chrono().to_rfc2822()
    );
    Answer::Full {
        status: 200,
        headers: vec![("content-type", "application/rss+xml".to_owned())],
        body: body.into_bytes(),
    }
}

/// Everything that a Manager's Scans contain.
async fn shown(world: &World, manager: ManagerName) -> String {
    let id = manager.manager.to_uuid();
    let from = format!(
        "scans AS s JOIN posts AS p ON p.receive_time = s.post_receive_time AND p.id = s.post_id \
         WHERE s.manager_id = '{id}' ORDER BY p.title"
    );
    let columns = "concat_ws(' ', p.post_id, p.title, p.text, p.url, p.subforum_id, p.subforum_name, \
                   p.subforum_url, p.user_id, p.user_name, p.user_url)";
    world.database.texts(columns, &from).await.join("\n")
}

#[tokio::test]
async fn feeds_on_one_host_neither_reveal_nor_replace_entries_of_each_other() {
    for hostile_is_first in [false, true] {
        let world = World::of_blogs(Duration::from_millis(200)).await;
        let server = TestServer::start(|_, request| {
            let host = request.header("host").unwrap_or_default();
            match &*request.path {
                "/uploads/b.xml" => rss(host, "Forged"),
                _ => rss(host, "Private"),
            }
        })
        .await;
        let feeds = ["/private.xml?token=canary", "/uploads/b.xml"]
            .map(|path| format!("blogs:{}", server.url(path)));
        let mut conn = world.database.connect().await;
        let other = Fixture::create(&mut conn).await;
        let accounts = [&world.fixture, &other];

        let mut managers = Vec::new();
        let mut order = vec![0, 1];
        if hostile_is_first {
            order.reverse();
        }
        let replica = world.ready_scanner().await;
        for account in order {
            let instructions = watching("kettle", &[&feeds[account]]);
            let manager = accounts[account]
                .applied_manager(&mut conn, &instructions, &[])
                .await;
            world.publish_applied(manager).await;
            world.until_scanned(manager, 2).await;
            managers.push((account, manager));
        }
        managers.sort();

        let private = shown(&world, managers[0].1).await;
        let forged = shown(&world, managers[1].1).await;
        assert!(
            !private.contains("Forged") && !private.contains("uploads"),
            "{private}"
        );
        assert!(
            !forged.contains("Private") && !forged.contains("private"),
            "{forged}"
        );
        assert_eq!(private.matches("kettle").count(), 2, "{private}");
        assert_eq!(forged.matches("kettle").count(), 2, "{forged}");
        // The token is nowhere in what receivers get.
        assert!(!private.contains("canary"), "{private}");
        // Both have the host's id, and each has separate ids where the host has none.
        let own_ids = |shown: &str| {
            let ids = shown.lines().filter_map(|line| line.split(' ').next());
            ids.filter(|id| id.starts_with("blogs:"))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(own_ids(&private).len(), 1, "{private}");
        assert_ne!(own_ids(&private), own_ids(&forged));
        replica.stop().await;
    }
}

#[tokio::test]
async fn errors_of_a_feed_do_not_show_its_token() {
    crate::logs::keep();
    let world = World::of_blogs(Duration::from_millis(200)).await;
    let server = TestServer::start(|_, _| Answer::Status(404)).await;
    let feed = format!("blogs:{}", server.url("/gone-feed.xml?token=canary"));
    world.manager("kettle", &[&feed]).await;
    let replica = world.ready_scanner().await;
    eventually("the feed fails", async || {
        world
            .feed(&feed, "last_error")
            .await
            .contains("no such feed")
    })
    .await;
    replica.stop().await;
    let error = world.feed(&feed, "last_error").await;
    assert!(error.contains("/gone-feed.xml?***"), "{error}");
    let lines = crate::logs::about("gone-feed.xml");
    assert!(!lines.is_empty());
    assert!(
        lines.iter().all(|line| !line.contains("canary")),
        "{lines:?}"
    );
}
