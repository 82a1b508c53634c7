//! `/mcp`: tools for a language model by the Model Context Protocol.
//!
//! Each tool makes requests to the API with the caller's key, which this process answers itself. They are checked,
//! charged, logged and recorded like the requests of any other client.

use std::time::Duration;

use actix_web::{
    HttpMessage as _, HttpRequest, HttpResponse,
    http::{StatusCode, header::ACCEPT},
    web,
};
use events::TraceContext;
use http_body_util::{BodyDataStream, BodyExt as _};
use tokio::time::timeout;

use crate::{
    ApiError, authenticate::Caller, body::RawJson, in_process::InProcess, request_id::RequestId,
};

/// Headers that apply to the requests of the tools, too.
const PASSED_ON: [&str; 3] = ["authorization", "x-forwarded-for", "x-test"];
/// Time limit of a call: that of clients of the API.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) async fn serve(
    request: HttpRequest,
    caller: Caller,
    api: web::Data<InProcess>,
    body: RawJson,
) -> Result<HttpResponse, ApiError> {
    let message = body.read().await?.parse(|message| Ok(message.clone()))?;
    let given = given(&request, message.to_string().into()).map_err(internal)?;
    // Other messages cost nothing. A host takes the server for dead if its `ping` waits.
    let is_call = message["method"] == "tools/call";
    let _permit = if is_call {
        Some(caller.state.assistant_for(caller.key.account).await?)
    } else {
        None
    };
    // A tool may make a change, so the answer is sent in any case.
    caller.check_unread()?;
    let client = api.client(request.peer_addr(), passed_on(&request, &given));
    let server = mcp::Server::with_writes(client, caller.key.role.may_write());
    let answered = timeout(TIMEOUT, mcp::over_http(server, given)).await;
    let (head, body) = answered
        .map_err(|elapsed| ApiError::Unavailable(elapsed.into()))?
        .into_parts();
    let status = StatusCode::from_u16(head.status.as_u16()).map_err(internal)?;
    let kind = head.headers.get(http::header::CONTENT_TYPE);
    let is = |wanted: &str| kind.is_some_and(|kind| kind == wanted);
    let mut answer = HttpResponse::build(status);
    for (name, value) in &head.headers {
        answer.append_header((name.as_str(), value.as_bytes()));
    }
    if is("text/event-stream") {
        return Ok(answer.streaming(BodyDataStream::new(body)));
    }
    let body = body.collect().await.map_err(internal)?.to_bytes();
    match status {
        // The body is JSON, so the library can only have refused it because it is no message of the protocol.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Err(ApiError::Malformed(
            "body is not a json-rpc 2.0 message".to_owned(),
        )),
        _ if status.is_client_error() && !is("application/json") => {
            let reason = String::from_utf8_lossy(&body).to_lowercase();
            Err(ApiError::Malformed(reason))
        }
        _ => Ok(answer.body(body)),
    }
}

fn passed_on(
    request: &HttpRequest,
    given: &http::Request<web::Bytes>,
) -> Vec<(http::HeaderName, http::HeaderValue)> {
    let headers = given.headers().iter();
    let headers = headers.filter(|(name, _)| PASSED_ON.contains(&name.as_str()));
    let headers = headers.map(|(name, value)| (name.clone(), value.clone()));
    let id = request.extensions().get::<RequestId>().cloned();
    let trace = TraceContext::current();
    let own = [
        ("x-request-id", id.map(|id| id.0.to_string())),
        ("traceparent", trace.traceparent),
        ("tracestate", trace.tracestate),
    ];
    let own = own.into_iter().filter_map(|(name, value)| {
        let value = http::HeaderValue::from_str(&value?).ok()?;
        Some((http::HeaderName::from_static(name), value))
    });
    headers.chain(own).collect()
}

/// Returns the request in the types of the protocol's library.
fn given(
    request: &HttpRequest,
    body: web::Bytes,
) -> Result<http::Request<web::Bytes>, http::Error> {
    let mut given = http::Request::post(request.uri().to_string());
    for (name, value) in request.headers() {
        if name != ACCEPT {
            given = given.header(name.as_str(), value.as_bytes());
        }
    }
    // The library requires both. Its answers to these tools are JSON, which every client reads.
    given = given.header(http::header::ACCEPT, "application/json, text/event-stream");
    given.body(body)
}

fn internal(error: impl Into<anyhow::Error>) -> ApiError {
    ApiError::Internal(error.into())
}
