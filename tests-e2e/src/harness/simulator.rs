//! The platforms, simulated by the `platform-simulator` program.

use std::{collections::BTreeSet, path::Path, time::Duration};

use http::Method;
use serde_json::{Value, json};

use super::{
    api::{self, Answer},
    process::Process,
    programs,
};

const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Simulator {
    process: Process,
    url: String,
    client: api::Client,
}

impl Simulator {
    pub(crate) async fn start(directory: &Path) -> Self {
        let mut command = programs::command("platform-simulator");
        let mut process = Process::spawn("platform-simulator", &mut command, directory);
        let line = process.line("simulator ready ", PATIENCE).await;
        let url = line.rsplit(' ').next().unwrap().to_owned();
        Self {
            process,
            url,
            client: api::client(),
        }
    }

    /// Returns `http://host:port`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Publishes posts in the format of the control API; returns the `Post.id` of each.
    pub(crate) async fn publish(&self, posts: &[Value]) -> Vec<String> {
        let answer = self
            .control(Method::POST, "posts", Some(json!(posts)))
            .await;
        let published = answer.as_array().unwrap().iter();
        published
            .map(|post| post["postId"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Returns the `Post.id` of each post that was part of an answer.
    pub(crate) async fn served(&self) -> BTreeSet<String> {
        let served = self.control(Method::GET, "served", None).await;
        served.as_object().unwrap().keys().cloned().collect()
    }

    pub(crate) fn print_log(&self) {
        self.process.print_log();
    }

    async fn control(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let url = format!("{}/control/{path}", self.url);
        let body = body.map(|body| body.to_string());
        let headers = [("content-type", "application/json")];
        let Answer { status, body, .. } =
            api::send(&self.client, method, &url, &headers, body).await;
        assert_eq!(status, 200, "{url}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap()
    }
}
