//! Reads the resources of the hostile account, as the API shows them to it.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use http::Method;
use serde_json::Value;

use super::hostile::Hostile;

/// Longest time to read all of them, because the attack goes on meanwhile.
const PATIENCE: Duration = Duration::from_secs(30);
/// Wait after a refused request.
const PAUSE: Duration = Duration::from_secs(1);

impl Hostile {
    /// Adds the reasons in health, errors of compilation, and the state of feeds to the reasons of refusals.
    pub(super) async fn collect_reasons(&self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        for manager in self.managers(deadline).await? {
            let reasons = manager["health"]["reasons"].as_array();
            for reason in reasons.into_iter().flatten().filter_map(Value::as_str) {
                self.tally().count_reason(&format!("health {reason}"));
            }
            if let Some(code) = manager["applyError"]["code"].as_str() {
                self.tally().count_reason(&format!("applyError {code}"));
            }
            let name = manager["name"].as_str().unwrap_or_default();
            let path = format!("/v1/{name}/feeds");
            let feeds = self.read(&path, deadline).await?["feeds"].take();
            for feed in feeds.as_array().into_iter().flatten() {
                for field in ["error", "notice"] {
                    if let Some(text) = feed[field].as_str() {
                        self.tally()
                            .count_reason(&format!("{field} of a feed: {text}"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns all Managers. A page of large ones ends early.
    async fn managers(&self, deadline: Instant) -> Result<Vec<Value>> {
        let first = format!("/v1/{}/managers?pageSize=100", self.account.namespace);
        let (mut managers, mut path) = (Vec::new(), first.clone());
        loop {
            let mut page = self.read(&path, deadline).await?;
            if let Value::Array(some) = page["managers"].take() {
                managers.extend(some);
            }
            let Some(token) = page["nextPageToken"].as_str() else {
                return Ok(managers);
            };
            path = format!("{first}&pageToken={token}");
        }
    }

    /// Reads a resource until `deadline`. The attack may use up what its account is given, so a refusal is tried again.
    async fn read(&self, path: &str, deadline: Instant) -> Result<Value> {
        let owner = &self.account.owner;
        loop {
            ensure!(
                Instant::now() < deadline,
                "not all is read within {PATIENCE:?}"
            );
            let answer = self.api().send(Method::GET, path, owner, None).await?;
            match answer.status {
                200 => return Ok(serde_json::from_slice(&answer.body)?),
                429 | 503 => tokio::time::sleep(PAUSE).await,
                status => bail!("{path}: {status}"),
            }
        }
    }
}
