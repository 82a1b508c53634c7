//! Attacks by changes that are cheap to request, and by requests that no account pays for.

use anyhow::Result;
use domain::key::ApiKey;
use http::Method;
use serde_json::json;

use super::{api::manual, hostile::Hostile, site::HOSTILE_WORD};

/// Distinct feeds of the Namespace to delete.
const FEEDS: usize = 10;
const WRONG_KEYS: usize = 64;
/// An address of this machine that no one else in the bench uses: the site has 127.0.0.1 to 127.0.0.64.
const OTHER_ADDRESS: [u8; 4] = [127, 0, 1, 1];

impl Hostile {
    pub(super) async fn deletes(&mut self) -> Result<()> {
        let feeds = self.feeds(FEEDS, |feed| format!("/fresh/deleted-{feed}.xml"));
        for _ in 0..self.size.managers {
            self.manager(&manual(&feeds, HOSTILE_WORD, &[])).await?;
        }
        let path = format!("/v1/{}?force=true", self.account.namespace);
        let keys = [self.account.second_owner.clone()];
        let api = self.api().in_test_mode();
        self.storm_by(&api, &keys, 5, Method::DELETE, &[path], None);
        Ok(())
    }

    pub(super) async fn churn(&mut self) -> Result<()> {
        let feeds = [self.site.feed("/victim.xml")];
        let mut paths = Vec::new();
        for _ in 0..20 {
            let manager = self.manager(&manual(&feeds, HOSTILE_WORD, &[])).await?;
            paths.push(format!("/v1/{manager}"));
        }
        let keys = self.editors();
        for is_enabled in [false, true] {
            let body = json!({"enable": is_enabled});
            self.storm(&keys, 1, Method::PATCH, &paths, Some(body));
        }
        Ok(())
    }

    pub(super) async fn bad_keys(&mut self) -> Result<()> {
        let keys: Vec<String> = (0..WRONG_KEYS)
            .map(|_| ApiKey::generate().expose())
            .collect();
        let api = self.api().at_address(OTHER_ADDRESS.into());
        let path = "/v1/caller".to_owned();
        self.storm_by(&api, &keys, 4, Method::GET, &[path], None);
        Ok(())
    }
}
