//! Recorded responses of forums: each post in them comes out complete.
//!
//! The expected posts are counted independently of the adapters: any object, at any depth, that has the fields
//! of a post.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, Mutex},
};

use platforms::{
    Adapter, Fetch, PollLimits, discourse::Discourse, hackernews::HackerNews, lemmy::Lemmy,
    reddit::Reddit,
};
use serde_json::{Value, json};
use url::Url;

use crate::platform::{answer, answering};

/// Responses by part of the address, each used once; 404 for the rest.
fn recorded(answers: Vec<(String, Value)>) -> Arc<dyn Fetch> {
    let answers = Mutex::new(answers);
    answering(move |url| {
        let mut answers = answers.lock().unwrap();
        match answers.iter().position(|one| url.path().contains(&one.0)) {
            Some(at) => answer(200, url, answers.remove(at).1.to_string()),
            None => answer(404, url, ""),
        }
    })
}

fn base() -> Url {
    "https://forum.example".parse().unwrap()
}

/// The native ids that a poll returns.
async fn poll(adapter: impl Adapter, what: &str, strip: &str) -> BTreeSet<String> {
    let polled = adapter.poll(what, None, &PollLimits::default()).await;
    let posts = polled.map_or(Vec::new(), |polled| polled.posts);
    for post in &posts {
        let json = serde_json::to_string(post).unwrap();
        assert!(!json.contains("\\u00"), "a control character in {json}");
        assert!(post.text.as_deref() != Some(""), "{json}");
        // A comment that is looked up by its id comes without its post.
        assert!(post.title.is_some() || post.text.is_some(), "{json}");
        assert!(post.title.as_deref() != Some(""), "{json}");
        assert!(
            post.subforum.is_some() && !post.user.name.is_empty(),
            "{json}"
        );
        assert!(post.url.starts_with("http"), "{json}");
    }
    let ids = posts.into_iter().map(|post| post.id);
    ids.map(|id| id.strip_prefix(strip).unwrap_or(&id).to_owned())
        .collect()
}

/// All objects, at any depth, outermost first.
fn objects(value: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        match value {
            Value::Object(fields) => {
                found.push(value);
                waiting.extend(fields.values());
            }
            Value::Array(items) => waiting.extend(items),
            _ => {}
        }
    }
    found
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// The expected and the returned ids, for posts and for comments.
type Compared = [(BTreeSet<String>, BTreeSet<String>); 2];

async fn reddit(body: &Value) -> Compared {
    let mut compared = Compared::default();
    let lists: Vec<Value> = match body {
        Value::Array(lists) => lists.clone(),
        list => vec![list.clone()],
    };
    for (at, (kind, what)) in [("t3", "r/some"), ("t1", "r/some/comments")]
        .iter()
        .enumerate()
    {
        for list in &lists {
            for child in list["data"]["children"].as_array().into_iter().flatten() {
                let data = &child["data"];
                let gone = text(data, "author") == "[deleted]"
                    || ["[deleted]", "[removed]"].contains(&text(data, "body"))
                    || ["[deleted]", "[removed]"].contains(&text(data, "selftext"))
                    || !data["removed_by_category"].is_null()
                    || data["promoted"] == true;
                if child["kind"] == *kind && !gone {
                    compared[at].0.insert(text(data, "name").to_owned());
                }
            }
            let listed = if *kind == "t1" { "/comments" } else { "/new" };
            // Mark the end of the list, because there is no next page.
            let mut list = list.clone();
            if list.is_object() && list["data"].is_object() {
                list["data"]["after"] = Value::Null;
            }
            let fetch = recorded(vec![(listed.to_owned(), list)]);
            let (id, secret) = ("id".to_owned(), "secret".to_owned().into());
            let adapter = Reddit::new("reddit".into(), base(), id, secret, fetch);
            compared[at].1.extend(poll(adapter, what, "reddit:").await);
        }
    }
    compared
}

async fn hackernews(body: &Value) -> Compared {
    let mut compared = Compared::default();
    let search = |answer: Value, items: Option<Url>, more: Vec<(String, Value)>| {
        let mut answers = vec![("search_by_date".to_owned(), answer)];
        answers.extend(more);
        HackerNews::new("hackernews".into(), base(), items, recorded(answers))
    };
    if body["hits"].is_array() {
        for hit in body["hits"].as_array().into_iter().flatten() {
            let tagged = |tag: &str| {
                hit["_tags"]
                    .as_array()
                    .is_some_and(|t| t.contains(&json!(tag)))
            };
            let at = usize::from(tagged("comment"));
            compared[at].0.insert(text(hit, "objectID").to_owned());
        }
        for (at, what) in ["newest", "comments"].into_iter().enumerate() {
            // The recordings have one hit per page; there is no next page here.
            let mut body = body.clone();
            body["hitsPerPage"] = json!(1_000);
            let adapter = search(body, None, Vec::new());
            compared[at].1 = poll(adapter, what, "hackernews:").await;
        }
    } else if let Some(id) = body["id"].as_u64().filter(|_| body["by"].is_string()) {
        if ["story", "job", "poll"].contains(&text(body, "type")) {
            compared[0].0.insert(id.to_string());
        }
        let more = vec![
            ("newstories".to_owned(), json!([id])),
            (format!("item/{id}.json"), body.clone()),
        ];
        let adapter = search(json!({"hits": []}), Some(base()), more);
        compared[0].1 = poll(adapter, "newest", "hackernews:").await;
    }
    compared
}

async fn lemmy(body: &Value) -> Compared {
    let mut compared = Compared::default();
    for (at, (list, kind, what)) in [
        ("posts", "post", "newest"),
        ("comments", "comment", "comments"),
    ]
    .into_iter()
    .enumerate()
    {
        let views = objects(body).into_iter().filter(|view| {
            let deleted =
                |name: &str| view[name]["deleted"] == true || view[name]["removed"] == true;
            let is_comment = view["comment"].is_object();
            view[kind].is_object()
                && view["creator"].is_object()
                && is_comment == (kind == "comment")
                && !deleted("post")
                && !deleted("comment")
        });
        let views: Vec<&Value> = views.collect();
        let ids = views
            .iter()
            .map(|view| text(&view[kind], "ap_id").to_owned());
        compared[at].0.extend(ids);
        // A single post has its own endpoint; here it is in a list.
        let answer = match &body[list] {
            Value::Array(_) => body.clone(),
            _ => json!({list: views}),
        };
        let fetch = recorded(vec![
            (format!("{kind}/list"), answer),
            (format!("{kind}/list"), json!({list: []})),
        ]);
        compared[at].1 = poll(Lemmy::new(base(), fetch), what, "").await;
    }
    compared
}

async fn discourse(body: &Value) -> Compared {
    let mut compared = Compared::default();
    let site = |answers| Discourse::new("discourse".into(), base(), None, recorded(answers));
    let users = body["users"].as_array().cloned().unwrap_or_default();
    let mut topics = Vec::new();
    if body["topic_list"].is_object() {
        for topic in body["topic_list"]["topics"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let author = users
                .iter()
                .find(|user| user["id"] == topic["posters"][0]["user_id"]);
            let mut whole = topic.clone();
            whole["post_stream"] = json!({"posts": [{
                "id": 1, "post_number": 1, "cooked": "<p>said</p>", "created_at": topic["created_at"],
                "username": author.map_or("someone", |author| text(author, "username")),
            }]});
            topics.push(whole);
        }
    } else if body["post_stream"].is_object() && body["title"].is_string() {
        topics.push(body.clone());
    }
    let listed: Vec<Value> = topics
        .iter()
        .map(|t| json!({"id": t["id"], "created_at": t["created_at"]}))
        .collect();
    let list = if body["topic_list"].is_object() {
        // Mark the end of the list, because there is no next page.
        let mut body = body.clone();
        body["topic_list"]["more_topics_url"] = Value::Null;
        body
    } else {
        json!({"topic_list": {"topics": listed}})
    };
    let mut answers = vec![("latest.json".to_owned(), list)];
    for topic in topics {
        let id = topic["id"].to_string();
        if topic["visible"] != false {
            compared[0].0.insert(format!("t/{id}"));
        }
        answers.push((format!("t/{id}.json"), topic));
    }
    compared[0].1 = poll(site(answers), "latest", "discourse:").await;
    for post in body["latest_posts"].as_array().into_iter().flatten() {
        let hidden =
            post["hidden"] == true || post["user_deleted"] == true || !post["deleted_at"].is_null();
        if !hidden && post["post_number"].as_u64() > Some(1) {
            compared[1].0.insert(format!("p/{}", post["id"]));
        }
    }
    let end = json!({"latest_posts": []});
    let mut answers = vec![("posts.json".to_owned(), body.clone())];
    answers.extend(std::iter::repeat_n(("posts.json".to_owned(), end), 10));
    compared[1].1 = poll(site(answers), "posts", "discourse:").await;
    compared
}

async fn read(platform: &str, path: &Path) -> (usize, usize) {
    let body = std::fs::read(path).unwrap();
    let name = format!("{platform}/{}", path.file_name().unwrap().to_string_lossy());
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        println!("{name}: no JSON, read as a feed elsewhere");
        return (0, 0);
    };
    let compared = match platform {
        "reddit" => reddit(&body).await,
        "hackernews" => hackernews(&body).await,
        "lemmy" => lemmy(&body).await,
        _ => discourse(&body).await,
    };
    let [(posts, given), (comments, said)] = compared;
    println!("{name}: {} posts, {} comments", given.len(), said.len());
    assert_eq!(given, posts, "{name}: posts");
    assert_eq!(said, comments, "{name}: comments");
    (given.len(), said.len())
}

#[tokio::test]
async fn forum_recordings_are_read_without_loss() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut total = (0, 0, 0);
    for platform in ["discourse", "hackernews", "lemmy", "reddit"] {
        let files = std::fs::read_dir(folder.join(platform)).unwrap();
        for file in files {
            let (posts, comments) = read(platform, &file.unwrap().path()).await;
            total = (total.0 + 1, total.1 + posts, total.2 + comments);
        }
    }
    let (files, posts, comments) = total;
    assert!(files >= 28 && posts >= 20 && comments >= 4, "{total:?}");
}
