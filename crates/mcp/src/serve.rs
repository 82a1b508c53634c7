//! The protocol's two transports.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http_body_util::{Full, combinators::BoxBody};
use rmcp::{
    service::ServerInitializeError,
    transport::{
        StreamableHttpServerConfig, StreamableHttpService,
        streamable_http_server::session::never::NeverSessionManager,
    },
};
use tokio::io::{AsyncBufRead, AsyncWrite, BufReader, stdin, stdout};

use crate::{Server, lines::Lines};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Serves one message per line of stdin, until its end.
///
/// # Errors
/// If a message cannot be written, or the first message is not a request of the protocol.
pub async fn on_stdio(server: Server) -> Result<(), Error> {
    on_lines(server, BufReader::new(stdin()), stdout()).await
}

pub(crate) async fn on_lines(
    server: Server,
    input: impl AsyncBufRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), Error> {
    match rmcp::serve_server(server, Lines::new(input, output)).await {
        Ok(running) => {
            running.waiting().await?;
            Ok(())
        }
        // The input ended before the first request.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(ServerInitializeError::ExpectedInitializeRequest(_)) => {
            Err("the first message must be a request".into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Answers one request of the Streamable HTTP transport. There are no sessions, so any replica can answer.
///
/// `Host` and `Origin` are not restricted: every request needs a key, which a browser does not add by itself.
pub async fn over_http(
    server: Server,
    request: http::Request<Bytes>,
) -> http::Response<BoxBody<Bytes, Infallible>> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts();
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    service.handle(request.map(Full::new)).await
}
