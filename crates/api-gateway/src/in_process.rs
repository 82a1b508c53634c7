//! Requests that this process makes to its own API, without a network.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context as _;
use client::{Answerer, Client, Retries};
use http::StatusCode;
use secrecy::SecretString;
use tokio::sync::{mpsc, oneshot};

/// Hands requests to a copy of the API on the worker that it was started on.
pub(crate) struct InProcess {
    client: Client,
    calls: mpsc::UnboundedSender<Call>,
}

/// A request that waits for its answer.
pub(crate) struct Call {
    pub(crate) request: http::Request<Vec<u8>>,
    /// The client that the request is made for.
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) answer: oneshot::Sender<http::Response<Vec<u8>>>,
}

impl InProcess {
    /// Returns a handle, and the requests that are made through it. The caller must have these answered.
    pub(crate) fn new(client: Client) -> (Self, mpsc::UnboundedReceiver<Call>) {
        let (calls, queue) = mpsc::unbounded_channel();
        (Self { client, calls }, queue)
    }

    /// Returns what each worker needs to start.
    pub(crate) fn any_client() -> anyhow::Result<Client> {
        let base = "http://localhost".parse().context("a fixed address")?;
        Ok(Client::new(base, SecretString::default())?.with_retries(Retries::NONE))
    }

    /// Returns a client whose requests come from `peer` and have these headers, the key among them.
    pub(crate) fn client(
        &self,
        peer: Option<SocketAddr>,
        headers: Vec<(http::HeaderName, http::HeaderValue)>,
    ) -> Client {
        let calls = self.calls.clone();
        let answerer: Answerer = Arc::new(move |mut request| {
            request.headers_mut().remove(http::header::AUTHORIZATION);
            request.headers_mut().extend(headers.iter().cloned());
            let (answer, answered) = oneshot::channel();
            // Without a receiver, the wait for the answer ends at once.
            let _ = calls.send(Call {
                request,
                peer,
                answer,
            });
            Box::pin(async { answered.await.unwrap_or_else(|_| unavailable()) })
        });
        self.client.clone().answered_by(answerer)
    }
}

pub(crate) fn unavailable() -> http::Response<Vec<u8>> {
    let mut answer = http::Response::new(Vec::new());
    *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    answer
}
