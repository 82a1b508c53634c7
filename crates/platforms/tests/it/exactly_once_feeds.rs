//! Every entry of a feed once: documents that contain all entries, in no order, with conditional requests.

use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use domain::Timestamp;
use platforms::{
    Adapter, Fetch, FetchError, FetchLimits, Fetched, PollLimits, Source, feed::FeedAdapter,
};
use proptest::prelude::*;
use serde_json::json;
use url::Url;

use crate::schedule::{
    Place, Planned, Played, Schedule, Shape, Stage, Staged, cases, play, schedules,
};

const FEED: &str = "https://blog.example/feed";

#[derive(Clone, Copy, Debug)]
enum Format {
    Json,
    Atom,
}

/// A feed in memory.
struct Blog {
    format: Format,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    /// Increases with each change, for the `ETag`.
    version: u64,
}

struct Entry {
    id: String,
    time: Timestamp,
    text: &'static str,
}

impl Blog {
    fn new(format: Format) -> Arc<Self> {
        Arc::new(Self {
            format,
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The entries of each version are in another order.
    fn document(&self, state: &State) -> String {
        let count = state.entries.len().max(1);
        let turn = usize::try_from(state.version).unwrap() * 7 % count;
        let (before, after) = state.entries.split_at(turn.min(state.entries.len()));
        let entries = after.iter().chain(before);
        match self.format {
            Format::Json => {
                let items = entries.map(|entry| {
                    json!({
                        "id": entry.id, "url": entry.id, "title": "a title",
                        "content_text": entry.text, "date_published": entry.time.to_string(),
                    })
                });
                let items: Vec<_> = items.collect();
                let version = "https://jsonfeed.org/version/1.1";
                json!({"version": version, "title": "a blog", "items": items}).to_string()
            }
            Format::Atom => {
                let entries = entries.map(|Entry { id, time, text }| {
                    format!(
                        "<entry><title>a title</title><id>{id}</id><link href=\"{id}\"/>\
                         <published>{time}</published><content type=\"text\">{text}</content></entry>"
                    )
                });
                let entries: String = entries.collect();
                format!(
                    "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>a blog</title>\
                     <id>{FEED}</id>{entries}</feed>"
                )
            }
        }
    }
}

impl Place for Arc<Blog> {
    fn publish(&self, post: &Planned) -> String {
        let id = format!("https://blog.example/posts/{}", post.number);
        let mut state = self.state();
        state.version += 1;
        state.entries.push(Entry {
            id: id.clone(),
            time: post.time,
            text: "some text",
        });
        id
    }

    fn delete(&self, post_id: &str) {
        let mut state = self.state();
        state.version += 1;
        state.entries.retain(|entry| entry.id != post_id);
    }

    fn edit(&self, post_id: &str) {
        let mut state = self.state();
        state.version += 1;
        let mut entries = state.entries.iter_mut();
        let entry = entries.find(|entry| entry.id == post_id).unwrap();
        entry.text = "other text";
    }

    fn set_now(&self, _now: Timestamp) {}
}

#[async_trait]
impl Fetch for Blog {
    async fn get(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        _limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let state = self.state();
        let tag = format!("\"{}\"", state.version);
        let known = headers.contains(&("if-none-match", tag.as_str()));
        let body = if known {
            String::new()
        } else {
            self.document(&state)
        };
        Ok(Fetched {
            status: if known { 304 } else { 200 },
            headers: vec![("etag".to_owned(), tag)],
            body: body.into_bytes(),
            final_url: url.clone(),
        })
    }
}

fn given_once(format: Format, schedule: &Schedule) -> Result<Played, TestCaseError> {
    let blog = Blog::new(format);
    let stage = Stage::new(Arc::clone(&blog));
    let fetch = Staged::new(&stage, Arc::clone(&blog) as Arc<dyn Fetch>);
    let url = FEED.parse().unwrap();
    let adapter: &dyn Adapter = &FeedAdapter::new("blog".into(), Source::Network, Some(url), fetch);
    play(schedule, &stage, adapter, "newest", &PollLimits::default())
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn by_whole_documents(schedule in schedules(&Shape::default())) {
        given_once(Format::Json, &schedule)?;
    }

    #[test]
    fn by_whole_documents_of_xml(schedule in schedules(&Shape { most_burst: 300, ..Shape::default() })) {
        given_once(Format::Atom, &schedule)?;
    }
}
