//! Reads the resources of the hostile account, as the API shows them to it.

use anyhow::Result;
use http::Method;
use serde_json::Value;

use super::hostile::Hostile;

/// Managers whose feeds are looked at.
const LOOKED_AT: usize = 3;

impl Hostile {
    /// Adds the reasons in health, errors of compilation, and the state of feeds to the reasons of refusals.
    pub(super) async fn ask_why(&self) -> Result<()> {
        let path = format!("/v1/{}/managers?pageSize=100", self.account.namespace);
        let managers = self.read(&path).await?["managers"].take();
        let managers = managers.as_array().cloned().unwrap_or_default();
        for manager in &managers {
            let reasons = manager["health"]["reasons"].as_array();
            for reason in reasons.into_iter().flatten().filter_map(Value::as_str) {
                self.tally().note_reason(&format!("health {reason}"));
            }
            if let Some(code) = manager["applyError"]["code"].as_str() {
                self.tally().note_reason(&format!("applyError {code}"));
            }
        }
        for manager in managers.iter().take(LOOKED_AT) {
            let name = manager["name"].as_str().unwrap_or_default();
            let feeds = self.read(&format!("/v1/{name}/feeds")).await?["feeds"].take();
            for feed in feeds.as_array().into_iter().flatten() {
                for field in ["error", "notice"] {
                    if let Some(text) = feed[field].as_str() {
                        self.tally()
                            .note_reason(&format!("{field} of a feed: {text}"));
                    }
                }
            }
        }
        Ok(())
    }

    async fn read(&self, path: &str) -> Result<Value> {
        let owner = &self.account.owner;
        let answer = self.api().send(Method::GET, path, owner, None).await?;
        Ok(serde_json::from_slice(&answer.body)?)
    }
}
