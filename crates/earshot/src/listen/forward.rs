//! Posts Scans to a receiver as the dispatcher does: the same body, the same signature, the same timeouts.

use std::time::{Duration, Instant};

use client::is_local;
use domain::{Scan, Timestamp, connection::SigningSecret};
use reqwest::{StatusCode, redirect::Policy};
use url::Url;

use crate::customer::Failure;

const TIMEOUT: Duration = Duration::from_secs(10);
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

pub(super) struct Forwarder {
    http: reqwest::Client,
    url: Url,
    secrets: Vec<SigningSecret>,
}

impl Forwarder {
    pub(super) fn new(url: Url, secret: Option<SigningSecret>) -> Result<Self, Failure> {
        let mut http = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .redirect(Policy::none())
            .user_agent(concat!("Earshot/", env!("CARGO_PKG_VERSION")));
        if is_local(&url) {
            http = http.no_proxy();
        }
        let http = http.build();
        Ok(Self {
            http: http.map_err(|error| Failure::Local(error.to_string()))?,
            url,
            secrets: secret.into_iter().collect(),
        })
    }

    /// Returns the receiver's answer. Retries without limit on a timeout and on answers that ask for a later attempt.
    pub(super) async fn post(&self, scan: &Scan) -> Result<String, Failure> {
        let body = webhook::body(scan.name, &scan.post)
            .map_err(|error| Failure::Local(error.to_string()))?;
        let mut wait = FIRST_WAIT;
        loop {
            let begin = Instant::now();
            let problem = match self.attempt(scan, body.clone()).await {
                Ok(status) if !stands_for_later(status) => {
                    return Ok(format!("{status} in {} ms", begin.elapsed().as_millis()));
                }
                Ok(status) => format!("answered {status}"),
                Err(error) => match error.is_timeout() {
                    true => "did not answer in time".to_owned(),
                    false => "is unreachable".to_owned(),
                },
            };
            let (url, seconds) = (&self.url, wait.as_secs_f32());
            eprintln!("earshot: {url} {problem}; retrying in {seconds:.1} s");
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    async fn attempt(&self, scan: &Scan, body: Vec<u8>) -> reqwest::Result<StatusCode> {
        // The Scan's own id, because there is no delivery; it is the same for each attempt.
        let signed =
            webhook::signature_headers(&self.secrets, scan.name.scan, Timestamp::now(), &body);
        let mut request = self
            .http
            .post(self.url.clone())
            .header("content-type", "application/json")
            .body(body);
        for (name, value) in signed {
            request = request.header(name, value);
        }
        Ok(request.send().await?.status())
    }
}

fn stands_for_later(status: StatusCode) -> bool {
    status.is_server_error()
        || matches!(
            status,
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
        )
}
