//! The main job: a page becomes a Manager. Of two hundred posts on three platforms the relevant ones reach the
//! customer, by webhook and by polling, and the others do not.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use serde_json::Value;

use super::support::{Customer, PATIENCE, assert_delivery, assert_scan, name, scans_by_post};
use crate::{
    customer::{self, BOILERPLATE, SENSIBLE},
    harness::{LOSS, Stack, eventually, receiver::Receiver, shape},
    posts::{self, Label, Platform, Post},
};

const BATCH: usize = 20;
const PAUSE: Duration = Duration::from_millis(150);

pub(crate) async fn run(stack: &Stack) {
    let customer = Customer::new(stack, "Hivelight", Receiver::start().await).await;
    let [forums, blog] = ["FORUM", "NETWORK"].map(|source| apply(&customer, source));
    let (forums, blog) = tokio::join!(forums, blog);
    let managers = [forums, blog];

    let posts = posts::two_hundred();
    let done = Cell::new(false);
    let (published, polled) = tokio::join!(
        async {
            let published = publish(stack, &posts).await;
            scanned(stack, &managers, &posts, &published).await;
            // What is decided about the other posts has been decided by then.
            for manager in &managers {
                stack.api.polled_again(manager, PATIENCE).await;
            }
            done.set(true);
            published
        },
        poll(stack, &managers, &done)
    );
    let scans = scans_by_post(stack, &managers).await;
    assert_relevant(&posts, &published, &scans);
    assert_eq!(polled, names(&scans), "{LOSS}what polling found");

    for (post, id) in posts.iter().zip(&published) {
        if let Some(scan) = scans.get(id) {
            assert_is(&scan["post"], post, id, stack);
            let manager = &managers[usize::from(post.platform == Platform::Blog)];
            assert_scan(scan, manager);
            assert_eq!(scan["match"]["focus"], "SALES");
            assert!(!scan["match"]["terms"].as_array().unwrap().is_empty());
        }
    }

    customer.delivered(&scans, PATIENCE).await;
    let by_name: BTreeMap<&str, &Value> = scans.values().map(|scan| (name(scan), scan)).collect();
    let counts = customer.receiver.counts();
    for delivery in customer.receiver.deliveries() {
        assert_delivery(&delivery, by_name[delivery.scan().as_str()]);
        assert_eq!(
            counts[&delivery.scan()],
            1,
            "a healthy receiver gets each scan once"
        );
    }

    pages_agree(stack, &managers, &scans).await;
    let listed = stack
        .api
        .get(&format!("/v1/{}", managers[0]["name"].as_str().unwrap()))
        .await;
    assert_eq!(
        listed.json(),
        managers[0],
        "scans change nothing about their manager"
    );
}

/// Creates a Manager for the product's page and waits until it is APPLIED.
async fn apply(customer: &Customer<'_>, source: &str) -> Value {
    let urls = [customer.stack.site.url("/")];
    let mut request = customer::manager("Beekeepers", source, &urls, &customer.connection);
    // The default, which responses contain.
    request["input"]["sensitivity"] = "BALANCED".into();
    let begin = Instant::now();
    let created = customer
        .stack
        .api
        .create_manager(&customer.namespace, &request)
        .await;
    for field in ["nickname", "type", "enable", "source", "input", "notices"] {
        assert_eq!(created[field], request[field], "{created:#}");
    }
    assert_eq!(created["mode"], "AUTOMATIC");
    assert!(created.get("instructions").is_none());

    let manager = customer.stack.api.applied(&created, PATIENCE).await;
    println!("{source}: applied after {:?}", begin.elapsed());
    shape::assert_timestamp(&manager["applyTime"]);
    assert_sensible(&manager["instructions"], source);
    manager
}

/// Checks what a person would expect of instructions that were compiled from the page.
fn assert_sensible(instructions: &Value, source: &str) {
    let texts = |field: &str| -> Vec<String> {
        let items = instructions[field].as_array().unwrap().iter();
        items
            .map(|item| item["text"].as_str().unwrap().to_lowercase())
            .collect()
    };
    let (terms, names) = (texts("include"), texts("names"));
    println!("{source}: names {names:?}, terms {terms:?}");
    assert!(names.iter().any(|name| name == "hivelight"), "{names:?}");
    for word in SENSIBLE {
        let stem = word.trim_end_matches('y');
        assert!(
            terms.iter().any(|term| term.contains(stem)),
            "no {word}: {terms:?}"
        );
    }
    for noise in BOILERPLATE {
        let is_noise = |term: &String| term == noise || term.split(' ').any(|word| word == noise);
        let found: Vec<&String> = terms
            .iter()
            .chain(&names)
            .filter(|term| is_noise(term))
            .collect();
        assert!(found.is_empty(), "{found:?} is noise");
    }
    assert_eq!(instructions["focus"], "SALES");
    assert!(
        instructions["brief"]
            .as_str()
            .unwrap()
            .contains("Hivelight")
    );
    let feeds: Vec<&str> = instructions["feeds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f.as_str().unwrap())
        .collect();
    let expected: &[&str] = match source {
        "FORUM" => &["hackernews:newest", "lemmy:newest"],
        _ => &["blog:newest"],
    };
    assert_eq!(feeds, expected);
}

/// Publishes the posts in batches, and waits until the platforms have served all of them; returns their ids.
async fn publish(stack: &Stack, posts: &[Post]) -> Vec<String> {
    let mut ids = Vec::new();
    for batch in posts.chunks(BATCH) {
        let batch: Vec<Value> = batch.iter().map(Post::json).collect();
        ids.extend(stack.simulator.publish(&batch).await);
        tokio::time::sleep(PAUSE).await;
    }
    eventually("all posts are served", PATIENCE, async || {
        let served = stack.simulator.served().await;
        ids.iter().all(|id| served.contains(id)).then_some(())
    })
    .await;
    ids
}

/// Waits until each relevant post is a Scan; those that are missed are reported later.
async fn scanned(stack: &Stack, managers: &[Value], posts: &[Post], published: &[String]) {
    let all_there = async {
        loop {
            let scans = scans_by_post(stack, managers).await;
            let mut relevant =
                { posts.iter().zip(published) }.filter(|(post, _)| post.label == Label::Relevant);
            if relevant.all(|(_, id)| scans.contains_key(id)) {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    let _ = tokio::time::timeout(PATIENCE, all_there).await;
}

/// Polls like a customer without a webhook, each time from the last createTime on, until `done` and a round without
/// more. Returns the names of the Scans found.
async fn poll(stack: &Stack, managers: &[Value], done: &Cell<bool>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut last: Vec<Option<String>> = vec![None; managers.len()];
    loop {
        // Read before the round, whose pages then have everything.
        let (is_last, before) = (done.get(), found.len());
        for (manager, last) in managers.iter().zip(&mut last) {
            let filter = last.as_ref().map(|last| format!("createTime > \"{last}\""));
            let mut query = vec![("pageSize", "7"), ("orderBy", "createTime asc")];
            query.extend(filter.as_deref().map(|filter| ("filter", filter)));
            let page = stack.api.scans_page(manager, &query).await;
            for scan in page["scans"].as_array().unwrap() {
                let is_new = found.insert(name(scan).to_owned());
                assert!(is_new, "{LOSS}polled twice: {scan}");
                *last = Some(scan["createTime"].as_str().unwrap().to_owned());
            }
        }
        if is_last && found.len() == before {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn assert_relevant(posts: &[Post], published: &[String], scans: &BTreeMap<String, Value>) {
    let mut missed = Vec::new();
    let mut wrong = Vec::new();
    let mut fuzzy = 0;
    for (post, id) in posts.iter().zip(published) {
        match (post.label, scans.contains_key(id)) {
            (Label::Relevant, false) => missed.push(&post.title),
            (Label::Irrelevant, true) => wrong.push((&post.title, &scans[id]["match"])),
            (Label::Fuzzy, true) => fuzzy += 1,
            _ => {}
        }
    }
    println!(
        "{} scans, {fuzzy} of them of posts that may count or not",
        scans.len()
    );
    assert!(
        missed.is_empty() && wrong.is_empty(),
        "missed: {missed:#?}\nwrong: {wrong:#?}"
    );
    let known: BTreeSet<&String> = published.iter().collect();
    assert!(
        scans.keys().all(|id| known.contains(id)),
        "a scan of an unknown post"
    );
}

/// Compares a Scan's post (SPEC.md 2.6) with the published one.
fn assert_is(found: &Value, post: &Post, id: &str, stack: &Stack) {
    assert_eq!(found["id"], id);
    assert_eq!(found["title"], post.title);
    assert_eq!(found["text"], post.text);
    assert_eq!(found["user"]["name"], post.author);
    let simulator = stack.simulator.url();
    match post.platform {
        Platform::HackerNews => {
            let number = id.trim_start_matches("hackernews:");
            assert_eq!(found["type"], "FORUM_LINK");
            assert_eq!(
                found["url"],
                format!("https://news.ycombinator.com/item?id={number}")
            );
            let section = if post.title.starts_with("Ask HN") {
                "ask"
            } else {
                "story"
            };
            assert_eq!(found["subforum"]["id"], section);
        }
        Platform::Lemmy => {
            assert_eq!(found["type"], "FORUM_LINK");
            assert_eq!(found["url"], id);
            assert_eq!(found["subforum"]["name"], "beekeeping");
            assert_eq!(
                found["subforum"]["url"],
                format!("{simulator}/lemmy/c/beekeeping")
            );
        }
        Platform::Blog => {
            assert_eq!(found["type"], "NETWORK_POST");
            assert_eq!(found["url"], id);
        }
    }
}

/// Pages of any size, in either order, contain the same Scans.
async fn pages_agree(stack: &Stack, managers: &[Value], scans: &BTreeMap<String, Value>) {
    for page_size in [1, 7, 100] {
        let mut listed = BTreeSet::new();
        for manager in managers {
            let scans = stack.api.scans(manager, page_size).await;
            let times: Vec<&str> = scans
                .iter()
                .map(|scan| scan["createTime"].as_str().unwrap())
                .collect();
            assert!(
                times.is_sorted_by(|a, b| a > b),
                "newest first, no two at once"
            );
            listed.extend(scans.iter().map(|scan| name(scan).to_owned()));
        }
        assert_eq!(listed, names(scans), "pages of {page_size}");
    }
    let default = stack.api.scans_page(&managers[0], &[]).await;
    assert_eq!(default["scans"].as_array().unwrap().len(), 5);
    let some = scans.values().next().unwrap();
    let single = stack.api.get(&format!("/v1/{}", name(some))).await;
    assert_eq!((single.status, single.json()), (200, some.clone()));
}

fn names(scans: &BTreeMap<String, Value>) -> BTreeSet<String> {
    scans.values().map(|scan| name(scan).to_owned()).collect()
}
