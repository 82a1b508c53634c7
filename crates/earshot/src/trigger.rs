//! `earshot trigger`: publishes a test post in the simulator of `earshot dev --demo`. It is processed like any other
//! post: it is polled, matched, and delivered if it matches.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use crate::customer::{self, Failure, one_line};

const TIMEOUT: Duration = Duration::from_secs(10);
const TITLE_CHARS: usize = 80;
const MAX_ANSWER_CHARS: usize = 300;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Text of the post.
    text: String,
    /// Title of the post; by default the beginning of the text.
    #[arg(long)]
    title: Option<String>,
    /// Feed to publish it in: `hackernews`, `lemmy/COMMUNITY` or `blog`.
    #[arg(long, default_value = "hackernews")]
    feed: String,
    /// Author of the post.
    #[arg(long, default_value = "you")]
    author: String,
    /// Data directory of `earshot dev --demo`.
    #[arg(long, value_name = "DIR", default_value = ".earshot")]
    data_dir: PathBuf,
    /// Use another simulator than that of the demo.
    #[arg(long, value_name = "URL", conflicts_with = "data_dir")]
    simulator: Option<Url>,
}

#[derive(Deserialize)]
struct Demo {
    simulator_port: u16,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    customer::finish(crate::block_on(trigger(arguments)))
}

async fn trigger(arguments: &Arguments) -> Result<(), Failure> {
    let base = arguments.simulator()?;
    let url = base
        .join("/control/posts")
        .map_err(|error| Failure::usage(format!("`{base}`: {error}")))?;
    crate::install_crypto();
    let http = reqwest::Client::builder()
        .timeout(TIMEOUT)
        .no_proxy()
        .build()
        .map_err(|error| Failure::Local(error.to_string()))?;
    let request = http.post(url).json(&json!([arguments.post()?]));
    let answer = request.send().await.map_err(|_refused| {
        Failure::Local(format!(
            "no simulator at {base}: is `earshot dev --demo` running?"
        ))
    })?;
    let status = answer.status();
    let text = answer.text().await.unwrap_or_default();
    let id = serde_json::from_str::<Value>(&text)
        .ok()
        .and_then(|published| published[0]["postId"].as_str().map(str::to_owned));
    match id {
        Some(id) if status.is_success() => {
            eprintln!("published; if a Manager matches it, its Scan arrives in a second or two");
            customer::print(&format!("{}\n", one_line(&id)))
        }
        _ => {
            let text: String = one_line(&text).chars().take(MAX_ANSWER_CHARS).collect();
            Err(Failure::Local(format!(
                "the simulator answered {status}: {text}"
            )))
        }
    }
}

impl Arguments {
    fn simulator(&self) -> Result<Url, Failure> {
        if let Some(url) = &self.simulator {
            return Ok(url.clone());
        }
        let path = self.data_dir.join("demo.json");
        let demo = std::fs::read(&path)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Demo>(&bytes).ok());
        let demo = demo.ok_or_else(|| {
            Failure::usage(format!(
                "no demo in {}: start `earshot dev --demo` in this folder, or give --data-dir DIR",
                self.data_dir.display()
            ))
        })?;
        let url = format!("http://127.0.0.1:{}", demo.simulator_port);
        url.parse()
            .map_err(|error| Failure::Local(format!("{url}: {error}")))
    }

    fn post(&self) -> Result<Value, Failure> {
        let (platform, community) = match self.feed.split_once('/') {
            Some((platform, community)) => (platform, Some(community)),
            None => (self.feed.as_str(), None),
        };
        let platform = match (platform, community) {
            ("hackernews", None) => "hackernews",
            ("lemmy", Some(_)) => "lemmy",
            ("blog", None) => "feed:blog",
            _ => {
                return Err(Failure::usage(format!(
                    "the demo has no feed `{}`: hackernews, lemmy/COMMUNITY, or blog",
                    self.feed
                )));
            }
        };
        let title = match &self.title {
            Some(title) => title.clone(),
            None => self.text.chars().take(TITLE_CHARS).collect(),
        };
        Ok(json!({
            "platform": platform, "community": community, "title": title, "text": self.text,
            "author": self.author,
        }))
    }
}
