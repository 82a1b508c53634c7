//! `earshot healthcheck`: for container health checks, where there is no shell and no curl.

use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use url::Url;

use crate::block_on;

const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// URL to check, such as `http://127.0.0.1:9090/readyz`.
    url: Url,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    block_on(async {
        let mut client = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none());
        if arguments.url.scheme() == "http" {
            // The system's CA certificates are not needed, and a small image may have none.
            client = client.tls_certs_only([]);
        }
        let client = client.build()?;
        let response = client
            .get(arguments.url.clone())
            .send()
            .await
            .context("no answer")?;
        let status = response.status();
        if status != reqwest::StatusCode::OK {
            bail!(
                "{} answered {status}: {}",
                arguments.url,
                response.text().await.unwrap_or_default()
            );
        }
        Ok(())
    })
}
