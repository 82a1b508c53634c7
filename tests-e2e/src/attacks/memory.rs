//! One account that makes a service need memory.

mod matches;
mod trickle;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

use super::{
    Shared,
    fleet::Fleet,
    host::{Entry, Host, Reply, Visit, atom, gzip},
    stage::{Account, PATIENCE, feed, manual},
};
use crate::harness::{eventually, server::answer};
use crate::suite::Test;

const WORD: &str = "flood";
/// Bytes of these letters are four times their number.
const LETTERS: std::ops::RangeInclusive<char> = '𐌰'..='𐍉';
/// Empty items of 7 bytes, just below the limit of a document.
const EMPTY_ITEMS: usize = 590_000;
const SMALL_POSTS: usize = 10;
/// Characters of the largest post.
const LARGE: usize = 40_000;
/// Large posts in a document.
const LARGE_POSTS: usize = 28;

pub(super) fn tests(shared: &Arc<Shared>) -> Vec<Test> {
    vec![
        shared.test_memory("feeds_of_empty_items_end_no_scanner", empty_items),
        shared.test_memory("page_of_empty_items_ends_no_compiler", empty_page),
        shared.test_memory("unread_pages_of_large_posts_end_no_gateway", unread_pages),
        shared.test_memory(
            "large_posts_for_slow_receivers_end_no_dispatcher",
            large_posts,
        ),
        shared.test_memory("muted_words_end_no_scanner", mutes),
        shared.test_memory(
            "posts_that_match_many_terms_end_no_scanner",
            matches::attack,
        ),
        shared.test_memory(
            "large_documents_that_arrive_slowly_end_no_scanner",
            trickle::attack,
        ),
    ]
}

async fn empty_items(_: &Fleet, attacker: &Account) {
    let host = Host::start(bomb).await;
    let feeds: Vec<String> = (0..10)
        .map(|number| feed(&host.url(&format!("/{number}"))))
        .collect();
    let manager = attacker.watch(&feeds, WORD, &[]).await;
    let path = format!("/v1/{}/feeds", manager["name"].as_str().unwrap());
    eventually("the attacker is told", PATIENCE, async || {
        let answer = attacker.get(&path).await.json();
        let mut feeds = answer["feeds"].as_array().unwrap().iter();
        let is_told = |feed: &Value| feed["notice"].is_string() || feed["error"].is_string();
        feeds.all(is_told).then_some(())
    })
    .await;
}

async fn empty_page(fleet: &Fleet, attacker: &Account) {
    let host = Host::start(bomb).await;
    let mut managers = Vec::new();
    for number in 0..10 {
        let page = host.url(&format!("/{number}"));
        managers.push(compiled_from(attacker, &page).await);
    }
    for manager in &managers {
        let compiled = attacker.compiled(manager, PATIENCE).await;
        assert_eq!(compiled["state"], "APPLY_FAILED", "{compiled:#}");
    }
    // The compiler still reads pages of others.
    let manager = compiled_from(attacker, &fleet.stack.site.url("/")).await;
    attacker.applied(&manager, PATIENCE).await;
}

/// Creates a Manager that is compiled from a page.
pub(super) async fn compiled_from(account: &Account, page: &str) -> Value {
    let manager = json!({
        "nickname": "page", "type": "FEED_MANAGER", "source": {"type": "FORUM"},
        "input": {"type": "STRUCTURED", "urls": [page], "focus": {"type": "SALES"}},
    });
    account.create_manager(&account.namespace, &manager).await
}

/// A document of a few kilobytes that needs a hundred times its decoded size if each item is kept. Every other one does
/// not say that it is compressed.
fn bomb(visit: &Visit) -> Reply {
    let items = "<item/>".repeat(EMPTY_ITEMS);
    gzip(
        "application/rss+xml",
        &format!("<rss version=\"2.0\"><channel>{items}</channel></rss>"),
        visit.target.ends_with(['0', '2', '4', '6', '8']),
    )
}

/// Many clients request pages of large Scans, and do not read them.
async fn unread_pages(fleet: &Fleet, attacker: &Account) {
    let host = Host::start(large_documents).await;
    let feeds: Vec<String> = (0..4)
        .map(|number| feed(&host.url(&format!("/{number}"))))
        .collect();
    let manager = attacker.watch(&feeds, WORD, &[]).await;
    wait_for_scans(attacker, 4 * LARGE_POSTS).await;
    let path = format!(
        "/v1/{}/scans?pageSize=100",
        manager["name"].as_str().unwrap()
    );
    let mut connections = Vec::new();
    for _ in 0..40 {
        connections.push(request(fleet, attacker, &path).await);
    }
    // The victim uses the gateway meanwhile.
    fleet.victim_gets_a_post().await;
    let mut refused = 0;
    for mut connection in connections {
        let mut head = [0; 12];
        connection.read_exact(&mut head).await.unwrap();
        match &head[9..] {
            b"200" => {}
            b"429" | b"503" => refused += 1,
            other => panic!("{}", String::from_utf8_lossy(other)),
        }
    }
    assert!(refused > 0, "the attacker is not told");
}

/// Sends a request. Of the answer, the connection takes a few kilobytes.
async fn request(fleet: &Fleet, attacker: &Account, path: &str) -> TcpStream {
    let host = fleet.stack.api_url.trim_start_matches("http://");
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut connection = socket.connect(host.parse().unwrap()).await.unwrap();
    let key = &attacker.owner_key;
    let head =
        format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\n\r\n");
    connection.write_all(head.as_bytes()).await.unwrap();
    connection
}

/// Receivers that were fast become slow, when many deliveries of large posts are to come.
async fn large_posts(_: &Fleet, attacker: &Account) {
    let is_slow = Arc::new(AtomicBool::new(false));
    let slow = Arc::clone(&is_slow);
    let host = Host::start(move |visit: &Visit| {
        let is_slow = slow.load(Ordering::SeqCst);
        let empty = answer(200, "text/plain", "");
        match (visit.target.starts_with("/hook"), is_slow) {
            (true, true) => Reply::Late(Duration::from_secs(25), empty),
            (true, false) => Reply::Answer(empty),
            (false, true) => large_documents(visit),
            (false, false) => small_documents(),
        }
    })
    .await;
    let mut connections = Vec::new();
    for number in 0..10 {
        let url = host.url(&format!("/hook/{number}"));
        let name = attacker.create_connection(&attacker.namespace, &url, json!({}));
        connections.push(name.await);
    }
    let feeds: Vec<String> = (0..10)
        .map(|number| feed(&host.url(&format!("/{number}"))))
        .collect();
    attacker.watch(&feeds, WORD, &connections).await;
    let small = feeds.len() * SMALL_POSTS * connections.len();
    eventually("small posts at fast receivers", PATIENCE, async || {
        (host.count("/hook") >= small).then_some(())
    })
    .await;
    is_slow.store(true, Ordering::SeqCst);
    let posts = feeds.len() * (SMALL_POSTS + LARGE_POSTS);
    for connection in &connections {
        eventually("a delivery of each post", PATIENCE, async || {
            let deliveries = attacker.deliveries(connection).await;
            (deliveries.len() == posts).then_some(())
        })
        .await;
    }
}

/// Namespaces and Managers mute as many words as the quotas permit.
async fn mutes(_: &Fleet, attacker: &Account) {
    let host = Host::start(|_: &Visit| Reply::Answer(atom("empty", &[]))).await;
    let mut manager = manual(&[feed(&host.url("/feed"))], WORD, &[]);
    manager["mutes"] = muted_words();
    let mut namespaces = Vec::new();
    let refused = loop {
        assert!(namespaces.len() < 1_500, "no quota of Namespaces");
        let body = json!({"nickname": "muted", "mutes": muted_words()});
        let answer = attacker.post("/v1/namespaces", &body).await;
        let created = answer.json();
        if answer.status != 201 {
            break created;
        }
        let namespace = created["name"].as_str().unwrap().to_owned();
        // Only those of Namespaces with a Manager count.
        attacker.create_manager(&namespace, &manager).await;
        namespaces.push(namespace);
    };
    assert_eq!(
        refused["details"][0]["issue"], "quota_exceeded",
        "{refused}"
    );
    let mut last = Value::Null;
    let refused = loop {
        let path = format!("/v1/{}/managers", namespaces[0]);
        let answer = attacker.post(&path, &manager).await;
        if answer.status != 201 {
            break answer.json();
        }
        last = answer.json();
    };
    assert_eq!(
        refused["details"][0]["issue"], "quota_exceeded",
        "{refused}"
    );
    attacker.applied(&last, PATIENCE).await;
}

/// As many words as mutes can have.
fn muted_words() -> Value {
    let mutes = (0..200).map(|number| {
        // Words of one byte, which take the most memory for what the quota counts.
        let letters = ('a'..='z').chain('0'..='9').cycle();
        let words = letters.skip(number % 26).step_by(1 + number / 26);
        let words: Vec<String> = words.take(50).map(String::from).collect();
        json!({"type": "TERM", "value": words.join(" ")})
    });
    mutes.collect()
}

/// A feed of posts that are as large as posts can be.
fn large_documents(_: &Visit) -> Reply {
    let letters: String = LETTERS.cycle().take(LARGE - 10).collect();
    let text = format!("{WORD} {letters}");
    let entries: Vec<Entry> = (0..LARGE_POSTS)
        .map(|number| entry(SMALL_POSTS + number, &text))
        .collect();
    Reply::Answer(atom("large", &entries))
}

fn small_documents() -> Reply {
    let entries: Vec<Entry> = (0..SMALL_POSTS).map(|number| entry(number, WORD)).collect();
    Reply::Answer(atom("small", &entries))
}

fn entry(number: usize, text: &str) -> Entry {
    Entry {
        id: format!("{number}"),
        title: format!("{WORD} {number}"),
        text: text.to_owned(),
        link: format!("http://attacker.example/{number}"),
    }
}

/// Waits until the account has got so many Scans today.
async fn wait_for_scans(account: &Account, count: usize) {
    eventually(&format!("{count} Scans"), PATIENCE, async || {
        let caller = account.get("/v1/caller").await.json();
        (caller["quotas"]["scansPerDay"]["used"] == json!(count)).then_some(())
    })
    .await;
}
