//! A test client that checks each response against `openapi.yaml`.

use std::time::Instant;

use reqwest::{Method, header::HeaderMap};
use serde_json::{Value, json};
use test_support::TIMEOUT;

use crate::contract::{self, Observed};

#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    key: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Client {
    pub(crate) fn new(base: &str, key: Option<String>) -> Self {
        runtime::crypto::install();
        Self {
            http: reqwest::Client::new(),
            base: base.to_owned(),
            key,
        }
    }

    /// Client with the same key for another gateway.
    pub(crate) fn at(&self, base: &str) -> Self {
        Self::new(base, self.key.clone())
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, |request| request).await
    }

    /// Sends a GET with query parameters, which this function percent-encodes. Repeats it after a 503: a busy machine
    /// may exceed the time limit of a page.
    pub(crate) async fn get_with(&self, path: &str, query: &[(&str, &str)]) -> Answer {
        let begin = Instant::now();
        loop {
            let answer = self
                .send(Method::GET, path, |request| request.query(query))
                .await;
            if answer.status != 503 || begin.elapsed() > TIMEOUT {
                return answer;
            }
            assert_eq!(answer.headers["retry-after"], "1");
        }
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, |request| request.json(body))
            .await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::PATCH, path, |request| request.json(body))
            .await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, |request| request).await
    }

    /// Sends a JSON body unchanged, so that it may be malformed.
    pub(crate) async fn post_text(&self, path: &str, body: impl Into<reqwest::Body>) -> Answer {
        let body = body.into();
        self.send(Method::POST, path, |request| {
            request
                .header("content-type", "application/json")
                .body(body)
        })
        .await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        shape: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
    ) -> Answer {
        let request = self.request(method.clone(), path);
        let answer = shape(request).send().await.unwrap();
        let status = answer.status().as_u16();
        let headers = answer.headers().clone();
        let bytes = answer.bytes().await.unwrap();
        let body = match serde_json::from_slice(&bytes) {
            Ok(body) => body,
            Err(_) => Value::String(String::from_utf8(bytes.to_vec()).unwrap()),
        };
        if method != Method::HEAD || status < 400 {
            contract::check(&Observed {
                method: method.as_str(),
                path: path.split('?').next().unwrap(),
                status,
                headers: &headers,
                body: &body,
            });
        }
        Answer {
            status,
            headers,
            body,
        }
    }

    /// Response to a GET as raw bytes.
    pub(crate) async fn text(&self, path: &str) -> String {
        let request = self.request(Method::GET, path);
        request.send().await.unwrap().text().await.unwrap()
    }

    /// Request with the key, whose response is not checked.
    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    /// Creates a Namespace and returns its name.
    pub(crate) async fn namespace(&self) -> String {
        self.made("/v1/namespaces", &json!({"nickname": "ours"}))
            .await
    }

    /// Creates a Connection and returns its name.
    pub(crate) async fn connection(&self, namespace: &str) -> String {
        let path = format!("/v1/{namespace}/connections");
        self.made(&path, &connection_body()).await
    }

    /// Creates a Manager and returns its name.
    pub(crate) async fn manager(&self, namespace: &str) -> String {
        let path = format!("/v1/{namespace}/managers");
        self.made(&path, &manager_body()).await
    }

    pub(crate) async fn made(&self, path: &str, body: &Value) -> String {
        let answer = self.post(path, body).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        answer.body["name"].as_str().unwrap().to_owned()
    }
}

impl Answer {
    /// Invalid fields of an error, as `(field, issue)`.
    pub(crate) fn details(&self) -> Vec<(&str, &str)> {
        let details = self.body["details"].as_array();
        details
            .into_iter()
            .flatten()
            .map(|one| {
                (
                    one["field"].as_str().unwrap(),
                    one["issue"].as_str().unwrap(),
                )
            })
            .collect()
    }

    /// Nicknames of the items of a list.
    pub(crate) fn nicknames(&self, key: &str) -> Vec<&str> {
        self.texts(key, "nickname")
    }

    /// Names of the items of a list.
    pub(crate) fn names(&self, key: &str) -> Vec<&str> {
        self.texts(key, "name")
    }

    /// A field of the items of a list.
    fn texts(&self, key: &str, field: &str) -> Vec<&str> {
        let items = self.body[key].as_array().unwrap();
        items
            .iter()
            .map(|item| item[field].as_str().unwrap())
            .collect()
    }

    /// Number in a header.
    pub(crate) fn number(&self, header: &str) -> i64 {
        self.headers[header].to_str().unwrap().parse().unwrap()
    }
}

pub(crate) fn connection_body() -> Value {
    json!({
        "nickname": "hook", "type": "HTTP_CONNECTION", "url": "https://hooks.example.com/earshot",
        "headers": {"x-secret": "hush"}
    })
}

/// Body of a MANUAL Manager.
pub(crate) fn manual_body(instructions: &Value) -> Value {
    let mut body = manager_body();
    body.as_object_mut().unwrap().remove("input");
    body["instructions"] = instructions.clone();
    body
}

pub(crate) fn manager_body() -> Value {
    json!({
        "nickname": "watch", "type": "FEED_MANAGER", "enable": true, "source": {"type": "FORUM"},
        "input": {"type": "STRUCTURED", "urls": ["https://example.com/backup"], "focus": {"type": "SALES"}}
    })
}
