//! A copy of the API on a worker, which answers the requests that the process makes to itself.

use std::{net::SocketAddr, rc::Rc};

use actix_http::{Request, body::to_bytes_limited};
use actix_service::{Service, ServiceFactory as _, map_config};
use actix_web::{
    App,
    dev::AppConfig,
    http::{
        Method,
        header::{HeaderName, HeaderValue},
    },
    middleware::from_fn,
    rt, web,
};
use client::Client;
use http::StatusCode;
use tokio::sync::mpsc;

use crate::{
    in_process::{Call, InProcess, unavailable},
    observe, routes,
    state::AppState,
};

/// Maximum size of an answer: a model reads less, and its values take many times that in memory.
const MAX_ANSWER_BYTES: usize = 2 * 1024 * 1024;
const TOO_LONG: &str = r#"{"code":400,"message":"too much for a tool: ask for fewer items"}"#;

/// Starts the copy of the API. Call this on the thread of a worker.
pub(crate) fn start(state: web::Data<AppState>, client: Client) -> InProcess {
    let (in_process, calls) = InProcess::new(client);
    rt::spawn(answer_all(state, calls));
    in_process
}

async fn answer_all(state: web::Data<AppState>, mut queue: mpsc::UnboundedReceiver<Call>) {
    let app = App::new()
        .app_data(state)
        .wrap(from_fn(observe::observe))
        .configure(routes::configure_resources);
    let app = map_config(app, |()| AppConfig::default());
    let Ok(app) = app.new_service(()).await else {
        tracing::error!("the API cannot be called in the process");
        return;
    };
    let app = Rc::new(app);
    while let Some(call) = queue.recv().await {
        let app = Rc::clone(&app);
        rt::spawn(async move {
            let answer = answer(&*app, call.request, call.peer).await;
            // The client may have left.
            let _ = call.answer.send(answer.unwrap_or_else(|error| {
                tracing::error!(%error, "a request within the process failed");
                unavailable()
            }));
        });
    }
}

async fn answer<A, B>(
    app: &A,
    request: http::Request<Vec<u8>>,
    peer: Option<SocketAddr>,
) -> anyhow::Result<http::Response<Vec<u8>>>
where
    A: Service<Request, Response = actix_web::dev::ServiceResponse<B>, Error = actix_web::Error>,
    B: actix_http::body::MessageBody,
{
    let (head, body) = request.into_parts();
    let mut inner = Request::with_payload(actix_http::Payload::from(web::Bytes::from(body)));
    inner.head_mut().method = Method::from_bytes(head.method.as_str().as_bytes())?;
    inner.head_mut().uri = head.uri.to_string().parse()?;
    inner.head_mut().peer_addr = peer;
    for (name, value) in &head.headers {
        let name = HeaderName::from_bytes(name.as_str().as_bytes())?;
        let value = HeaderValue::from_bytes(value.as_bytes())?;
        inner.headers_mut().append(name, value);
    }
    let answered = app.call(inner).await;
    let answered = answered.map_err(|error| anyhow::anyhow!("{error}"))?;
    let mut answer = http::Response::builder().status(answered.status().as_u16());
    for (name, value) in answered.headers() {
        answer = answer.header(name.as_str(), value.as_bytes());
    }
    let body = match to_bytes_limited(answered.into_body(), MAX_ANSWER_BYTES).await {
        Ok(body) => body.map_err(|error| anyhow::anyhow!("{}", error.into()))?,
        Err(_) => {
            let answer = http::Response::builder().status(StatusCode::BAD_REQUEST);
            return Ok(answer.body(TOO_LONG.into())?);
        }
    };
    Ok(answer.body(body.into())?)
}
