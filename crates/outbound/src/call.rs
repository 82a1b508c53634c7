//! A request to a service, with the whole response.
//!
//! Everything is bounded as for a page: one deadline from DNS to the last byte, and the body before and after
//! decompression. A redirect is returned like any other response, so that a secret in a header is sent only to
//! the configured address.

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
    /// Sends `request` and reads the response, with any status. `limits.max_redirects` is ignored. The client's
    /// policy says which addresses are allowed.
    ///
    /// # Errors
    /// When the URL is invalid, nothing answers in time, or a limit is reached.
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
