//! A small HTTP server on the loopback, for receivers and sites.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, combinators::BoxBody};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, task::JoinHandle};

pub(crate) type Body = BoxBody<Bytes, Infallible>;

/// A running server. Dropping it stops the server and closes its connections.
pub(crate) struct Server {
    addr: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// A handler that is dropped before it has answered has lost its client.
    pub(crate) async fn start<H>(handler: H) -> Self
    where
        H: AsyncHandler,
    {
        Self::start_at("127.0.0.1:0", handler).await.unwrap()
    }

    /// Works like [`Self::start`], at an address that may be in use.
    pub(crate) async fn start_at<H>(address: &str, handler: H) -> std::io::Result<Self>
    where
        H: AsyncHandler,
    {
        let listener = TcpListener::bind(address).await?;
        let addr = listener.local_addr()?;
        let handler = Arc::new(handler);
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    continue;
                };
                while connections.try_join_next().is_some() {}
                let handler = Arc::clone(&handler);
                let service = service_fn(move |request| {
                    let handler = Arc::clone(&handler);
                    async move { Ok::<_, Infallible>(handler.handle(request).await) }
                });
                connections.spawn(async move {
                    // A client that disconnects is not an error.
                    let _ = http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Ok(Self { addr, task })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) trait AsyncHandler: Send + Sync + 'static {
    fn handle(&self, request: Request<Incoming>) -> impl Future<Output = Response<Body>> + Send;
}

pub(crate) fn answer(status: u16, content_type: &str, body: impl Into<Bytes>) -> Response<Body> {
    Response::builder()
        .status(status)
        .header("content-type", content_type)
        .body(http_body_util::Full::new(body.into()).boxed())
        .unwrap()
}
