//! Feeds that customers name cannot reach internal addresses, and documents cannot contain bombs.

use std::time::Duration;

use test_support::{Answer, TestServer, eventually};

use crate::support::World;

fn rss(title: &str) -> Answer {
    feed_of(
        title,
        &format!(
            "<!DOCTYPE r [<!ENTITY a \"{0}\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">\
         <!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;\"><!ENTITY d \"&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;\">\
         <!ENTITY x SYSTEM \"file:///etc/passwd\">]>",
            "boom ".repeat(2_000)
        ),
    )
}

fn feed_of(title: &str, declarations: &str) -> Answer {
    let body = format!(
        "<?xml version=\"1.0\"?>{declarations}<rss version=\"2.0\"><channel><title>a blog</title><item><guid>https://a.example/1</guid>\
         <link>https://a.example/1</link><title>{title} kettle</title><pubDate>{}</pubDate></item></channel></rss>",
        // An entry without a date counts as old.
        domain::Timestamp::now().to_chrono().to_rfc2822()
    );
    Answer::Full {
        status: 200,
        headers: vec![("content-type", "application/rss+xml".to_owned())],
        body: body.into_bytes(),
    }
}

#[tokio::test]
async fn internal_feed_addresses_are_forbidden_and_not_fetched() {
    let mut world = World::of_blogs(Duration::from_millis(200)).await;
    world.config.outbound.allow_cidrs.clear();
    let server = TestServer::start(|_, _| rss("a")).await;
    let port = server.url("/").parse::<url::Url>().unwrap().port().unwrap();
    let hosts = [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "169.254.169.254",
        "10.0.0.1",
        "2130706433",
    ];
    let feeds = hosts.map(|host| format!("blogs:http://{host}:{port}/feed"));
    let feeds: Vec<&str> = feeds.iter().map(String::as_str).collect();
    let manager = world.manager("kettle", &feeds).await;
    let replica = world.ready_scanner().await;
    for feed in &feeds {
        eventually(feed, async || {
            world
                .feed(feed, "last_error")
                .await
                .contains("address not allowed")
        })
        .await;
    }
    assert_eq!(server.count(), 0);
    assert_eq!(world.scanned(manager).await.len(), 0);
    replica.stop().await;
}

/// The address itself is allowed here, but its redirect is not.
#[tokio::test]
async fn feeds_that_redirect_to_internal_addresses_are_forbidden() {
    let world = World::of_blogs(Duration::from_millis(200)).await;
    let server = TestServer::start(|_, request| match &*request.path {
        "/mapped" => Answer::redirect("http://[::ffff:10.0.0.1]/feed"),
        _ => Answer::redirect("http://169.254.169.254/latest/meta-data/"),
    })
    .await;
    let feeds = ["/metadata", "/mapped"].map(|path| format!("blogs:{}", server.url(path)));
    let feeds: Vec<&str> = feeds.iter().map(String::as_str).collect();
    world.manager("kettle", &feeds).await;
    let replica = world.ready_scanner().await;
    for feed in &feeds {
        eventually(feed, async || {
            world
                .feed(feed, "last_error")
                .await
                .contains("address not allowed")
        })
        .await;
    }
    replica.stop().await;
}

/// Entities that a document declares are not expanded: neither to ever longer texts, nor from files.
#[tokio::test]
async fn xml_entities_are_not_expanded() {
    let world = World::of_blogs(Duration::from_millis(200)).await;
    let server = TestServer::start(|_, request| match &*request.path {
        "/bomb" => rss("&d;"),
        "/file" => rss("&x;"),
        _ => feed_of("A plain", ""),
    })
    .await;
    let feeds = ["/bomb", "/file", "/plain"].map(|path| format!("blogs:{}", server.url(path)));
    let feeds: Vec<&str> = feeds.iter().map(String::as_str).collect();
    let manager = world.manager("kettle", &feeds).await;
    let replica = world.ready_scanner().await;
    world.until_scanned(manager, 3).await;
    let mut titles = world.scanned(manager).await;
    titles.sort_unstable();
    assert_eq!(titles, ["&d; kettle", "&x; kettle", "A plain kettle"]);
    replica.stop().await;
}
