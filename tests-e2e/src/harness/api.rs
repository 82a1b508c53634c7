//! A client of the REST API that checks every error against SPEC.md part 7.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client as Legacy, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};
use url::form_urlencoded::byte_serialize;

use super::{eventually, shape};

const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(200);

pub(crate) type Client = Legacy<HttpConnector, Full<Bytes>>;

pub(crate) fn client() -> Client {
    Legacy::builder(TokioExecutor::new()).build_http()
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).map(|value| value.to_str().unwrap());
        value.unwrap_or_default()
    }
}

/// Sends a request that must be answered, with any status.
pub(crate) async fn send(
    client: &Client,
    method: Method,
    url: &str,
    headers: &[(&str, &str)],
    body: Option<String>,
) -> Answer {
    let answer = try_send(client, method.clone(), url, headers, body).await;
    answer.unwrap_or_else(|error| panic!("{method} {url}: {error}"))
}

/// Works like [`send`], but returns an error if there is no server.
pub(crate) async fn try_send(
    client: &Client,
    method: Method,
    url: &str,
    headers: &[(&str, &str)],
    body: Option<String>,
) -> Result<Answer, String> {
    let mut request = Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::from(body.unwrap_or_default())).unwrap();
    let exchange = async {
        let response = client.request(request).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(std::io::Error::other);
        Ok::<_, hyper_util::client::legacy::Error>((head, body))
    };
    let answered = tokio::time::timeout(PATIENCE, exchange).await;
    let (head, body) = answered
        .map_err(|_elapsed| format!("no answer within {PATIENCE:?}"))?
        .map_err(|error| format!("{error:?}"))?;
    Ok(Answer {
        status: head.status.as_u16(),
        headers: head.headers,
        body: body.map_err(|error| format!("{error:?}"))?.to_bytes(),
    })
}

/// A client with a key.
pub(crate) struct Api {
    base_url: String,
    key: String,
    client: Client,
    is_patient: bool,
}

impl Api {
    pub(crate) fn new(base_url: &str, key: &str) -> Self {
        Self {
            base_url: base_url.to_owned(),
            key: key.to_owned(),
            client: client(),
            is_patient: false,
        }
    }

    /// Makes requests that must be answered repeat those that are answered with 503.
    pub(crate) fn patient(self) -> Self {
        Self {
            is_patient: true,
            ..self
        }
    }

    pub(crate) fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Sends any request with this key; `path` starts at the root.
    pub(crate) async fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
    ) -> Answer {
        let begin = Instant::now();
        loop {
            let answer = self.ask(method.clone(), path, headers, body.clone()).await;
            let answer = answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
            let is_final = answer.status != 503 || begin.elapsed() > PATIENCE;
            if is_final || !self.is_patient {
                return answer;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Works like [`Self::request`]; returns `None` when no server answers.
    pub(crate) async fn try_request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
    ) -> Option<Answer> {
        self.ask(method, path, headers, body).await.ok()
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
    ) -> Result<Answer, String> {
        let authorization = format!("Bearer {}", self.key);
        let mut all = vec![("authorization", authorization.as_str())];
        all.extend_from_slice(headers);
        let url = format!("{}{path}", self.base_url);
        let answer = try_send(&self.client, method, &url, &all, body).await?;
        if answer.status >= 400 {
            shape::assert_error(answer.status, &answer.json());
        }
        Ok(answer)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.request(Method::GET, path, &[], None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        let json = [("content-type", "application/json")];
        self.request(Method::POST, path, &json, Some(body.to_string()))
            .await
    }

    /// Creates a resource and returns it.
    async fn create(&self, path: &str, body: &Value) -> Value {
        let answer = self.post(path, body).await;
        let created = answer.json();
        assert_eq!(answer.status, 201, "{path}: {created}");
        shape::assert_timestamp(&created["createTime"]);
        shape::assert_timestamp(&created["updateTime"]);
        created
    }

    /// Creates a Namespace and returns its name.
    pub(crate) async fn create_namespace(&self, nickname: &str) -> String {
        let body = json!({"nickname": nickname});
        let created = self.create("/v1/namespaces", &body).await;
        assert_eq!(created["nickname"], nickname);
        created["name"].as_str().unwrap().to_owned()
    }

    /// Creates a Connection and returns its name.
    pub(crate) async fn create_connection(
        &self,
        namespace: &str,
        url: &str,
        headers: Value,
    ) -> String {
        let body = json!({
            "nickname": "receiver", "type": "HTTP_CONNECTION", "url": url, "method": "POST",
            "headers": headers,
        });
        let path = format!("/v1/{namespace}/connections");
        let created = self.create(&path, &body).await;
        created["name"].as_str().unwrap().to_owned()
    }

    /// Creates a Manager and returns it as it was answered.
    pub(crate) async fn create_manager(&self, namespace: &str, manager: &Value) -> Value {
        let path = format!("/v1/{namespace}/managers");
        let created = self.create(&path, manager).await;
        assert_eq!(created["state"], "PENDING_APPLY", "{created}");
        created
    }

    /// Waits until a Manager is compiled, successfully or not.
    pub(crate) async fn compiled(&self, manager: &Value, within: Duration) -> Value {
        let name = manager["name"].as_str().unwrap();
        eventually(&format!("{name} is compiled"), within, async || {
            let answer = self.get(&format!("/v1/{name}")).await;
            assert_eq!(answer.status, 200);
            let manager = answer.json();
            (manager["state"] != "PENDING_APPLY").then_some(manager)
        })
        .await
    }

    /// Waits until a Manager is APPLIED.
    pub(crate) async fn applied(&self, manager: &Value, within: Duration) -> Value {
        let manager = self.compiled(manager, within).await;
        assert_eq!(manager["state"], "APPLIED", "{manager:#}");
        manager
    }

    /// Returns the log of a Connection: all of its deliveries.
    pub(crate) async fn deliveries(&self, connection: &str) -> Vec<Value> {
        let first = format!("/v1/{connection}/deliveries?pageSize=100");
        let (mut deliveries, mut path) = (Vec::new(), first.clone());
        loop {
            let page = self.get(&path).await.json();
            deliveries.extend(page["deliveries"].as_array().unwrap().iter().cloned());
            let Some(token) = page["nextPageToken"].as_str() else {
                return deliveries;
            };
            let token: String = byte_serialize(token.as_bytes()).collect();
            path = format!("{first}&pageToken={token}");
        }
    }

    /// Returns the time of the last poll of each of a Manager's feeds.
    pub(crate) async fn polls(&self, manager: &Value) -> Vec<Option<String>> {
        let name = manager["name"].as_str().unwrap();
        let answer = self.get(&format!("/v1/{name}/feeds")).await.json();
        let feeds = answer["feeds"].as_array().unwrap().iter();
        feeds
            .map(|feed| feed["lastPollTime"].as_str().map(str::to_owned))
            .collect()
    }

    /// Waits until each feed of a Manager has been polled twice from now on: the second poll began after now.
    pub(crate) async fn polled_again(&self, manager: &Value, within: Duration) {
        for _ in 0..2 {
            let before = self.polls(manager).await;
            eventually("every feed is polled again", within, async || {
                let now = self.polls(manager).await;
                let all = before.iter().zip(&now).all(|(before, now)| before != now);
                all.then_some(())
            })
            .await;
        }
    }

    /// Returns one page of a Manager's Scans.
    pub(crate) async fn scans_page(&self, manager: &Value, query: &[(&str, &str)]) -> Value {
        let name = manager["name"].as_str().unwrap();
        let mut url = url::Url::parse("http://host/").unwrap();
        url.query_pairs_mut().extend_pairs(query);
        let query = url.query().unwrap_or_default();
        let answer = self.get(&format!("/v1/{name}/scans?{query}")).await;
        let page = answer.json();
        assert_eq!(answer.status, 200, "{page}");
        page
    }

    /// Returns all Scans of a Manager, newest first, read in pages of `page_size`.
    pub(crate) async fn scans(&self, manager: &Value, page_size: usize) -> Vec<Value> {
        let size = page_size.to_string();
        let mut scans = Vec::new();
        let mut token: Option<String> = None;
        loop {
            let mut query = vec![("pageSize", size.as_str())];
            query.extend(token.as_deref().map(|token| ("pageToken", token)));
            let page = self.scans_page(manager, &query).await;
            let items = page["scans"].as_array().unwrap();
            scans.extend(items.iter().cloned());
            match page.get("nextPageToken") {
                Some(next) => {
                    assert_eq!(items.len(), page_size, "a page with a next one is full");
                    token = Some(next.as_str().unwrap().to_owned());
                }
                None => return scans,
            }
        }
    }
}
