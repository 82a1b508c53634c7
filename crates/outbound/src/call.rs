//! One question to a service: a request whose whole answer matters.
//!
//! Everything is bounded as with a page: one deadline from DNS to the last byte, and the body before and
//! after decompression. A redirect is an answer like any other, so that a secret in a header goes to
//! the named address and to no other.

use std::sync::Arc;

use domain::Issue;
use url::Url;

use crate::{
    Client, Error, Limits, Page, Request,
    client::header_map,
    fetch::read,
    trace::{Stage, Trace},
};

impl Client {
    /// Sends `request` and reads the answer, whatever its status. `limits.max_redirects` has no say.
    /// Where the address may lie is this client's rule.
    ///
    /// # Errors
    /// When the URL is none, nothing answers in time, or a limit is met.
    pub async fn call(&self, request: Request<'_>, limits: Limits) -> Result<Page, Error> {
        let url = Url::parse(request.url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or(Error::Url {
            issue: Issue::InvalidFormat,
            redirected: false,
        })?;
        let headers = header_map(request.headers)?;
        let trace = Arc::new(Trace::default());
        let work = async {
            let sending = self.send(
                request.method,
                &url,
                headers,
                request.body,
                Arc::clone(&trace),
            );
            let response = sending.await?;
            trace.enter(Stage::Reading);
            read(url.clone(), response, limits).await
        };
        match tokio::time::timeout(limits.total, Box::pin(work)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(trace.timeout(limits.total).into()),
        }
    }
}
