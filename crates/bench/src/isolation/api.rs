//! A client of the REST API, and the resources that this bench creates.

use std::{net::IpAddr, sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};

/// Longer than any limit of the gateway.
const PATIENCE: Duration = Duration::from_secs(40);

#[derive(Clone)]
pub(super) struct Api {
    base: Arc<str>,
    client: Client<HttpConnector, Full<Bytes>>,
    is_test: bool,
}

pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Bytes,
}

impl Api {
    pub(super) fn new(base: &str) -> Self {
        Self {
            base: base.into(),
            client: Client::builder(TokioExecutor::new()).build_http(),
            is_test: false,
        }
    }

    /// Returns a client whose requests are rolled back.
    pub(super) fn in_test_mode(&self) -> Self {
        Self {
            is_test: true,
            ..self.clone()
        }
    }

    /// Returns a client at another address of this machine.
    pub(super) fn at_address(&self, address: IpAddr) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_local_address(Some(address));
        Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            ..self.clone()
        }
    }

    /// Returns the gateway's address.
    pub(super) fn host(&self) -> &str {
        self.base.trim_start_matches("http://")
    }

    /// Sends a request that may be answered with any status. `path` starts at the root.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        key: &str,
        body: Option<&Value>,
    ) -> Result<Answer> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header("authorization", format!("Bearer {key}"));
        if self.is_test {
            request = request.header("x-test", "true");
        }
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = request.body(Full::from(body))?;
        let exchange = async {
            let (head, body) = self.client.request(request).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            anyhow::Ok(Answer {
                status: head.status.as_u16(),
                body,
            })
        };
        tokio::time::timeout(PATIENCE, exchange)
            .await
            .context("the gateway does not answer")?
    }

    /// Creates a resource and returns its name.
    pub(super) async fn create(&self, path: &str, key: &str, body: &Value) -> Result<String> {
        let answer = self.send(Method::POST, path, key, Some(body)).await?;
        let text = String::from_utf8_lossy(&answer.body);
        ensure!(answer.status == 201, "{path}: {} {text}", answer.status);
        let created: Value = serde_json::from_str(&text)?;
        let name = created["name"].as_str().context("a resource has a name")?;
        Ok(name.to_owned())
    }
}

/// A MANUAL Manager that matches each post with `word`.
pub(super) fn manual(feeds: &[String], word: &str, connections: &[String]) -> Value {
    let notices = connections
        .iter()
        .map(|name| json!({"type": "HTTP_REQUEST", "connection": name}));
    json!({
        "nickname": word, "type": "FEED_MANAGER", "source": {"type": "NETWORK"},
        "instructions": {"feeds": feeds, "require": [[word]]},
        "notices": notices.collect::<Vec<_>>(),
    })
}

/// A Manager that is compiled from a page.
pub(super) fn automatic(page: &str) -> Value {
    json!({
        "nickname": "page", "type": "FEED_MANAGER", "source": {"type": "NETWORK"},
        "input": {"type": "STRUCTURED", "urls": [page], "focus": {"type": "SALES"}},
    })
}

pub(super) fn connection(url: &str) -> Value {
    json!({"nickname": "endpoint", "type": "HTTP_CONNECTION", "url": url})
}
