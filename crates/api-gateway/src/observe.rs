//! The outermost layer: identifies, counts and logs every request.
//!
//! It adds a span and one summary line, without bodies, keys or header values; two metrics whose labels contain no
//! client input; `x-request-id`, `x-test` and caching headers; and the error body, for responses of the framework
//! that lack it.

use std::time::{Duration, Instant};

use actix_web::{
    Error, HttpMessage as _, ResponseError,
    body::{BoxBody, EitherBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{
        ConnectionType, Method, StatusCode,
        header::{self, HeaderMap, HeaderName, HeaderValue},
    },
    middleware::Next,
    web::Data,
};
use events::TraceContext;
use tracing::{Instrument, Span, field::Empty};

use crate::{
    ApiError, authenticate, compress,
    request_id::{RequestId, X_REQUEST_ID},
    routes::template,
    state::AppState,
    test_mode,
};

/// Minimum length that <https://www.w3.org/TR/trace-context/> requires to propagate.
const MAX_TRACESTATE_BYTES: usize = 512;

/// Histogram buckets of the OpenTelemetry conventions.
const SECONDS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];

runtime::metrics! {
    static DURATION: HistogramVec = "http_server_request_duration_seconds",
        "Time from a request's head to its answer's.",
        ["http_request_method", "http_route", "http_response_status_code", "error_type"],
        buckets: SECONDS;
    static ACTIVE: IntGaugeVec = "http_server_active_requests",
        "Requests that are being answered.", ["http_request_method"];
}

/// Counts a request while it is in progress, even if its client leaves before the response.
struct Active(&'static str);

impl Active {
    fn new(method: &'static str) -> Self {
        ACTIVE.with_label_values(&[method]).inc();
        Self(method)
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        ACTIVE.with_label_values(&[self.0]).dec();
    }
}

/// The middleware that identifies, counts and logs requests.
pub(crate) async fn observe(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody, BoxBody>>, Error> {
    let start = Instant::now();
    let method = method_label(request.method());
    let _active = Active::new(method);
    let route = template(request.path());
    let request_id = RequestId::of(request.headers());
    let test = test_mode::parse(request.headers()).unwrap_or(false);
    compress::choose(&mut request);
    let secure = request
        .app_data::<Data<AppState>>()
        .is_some_and(|state| state.serves_tls);

    let scheme = if secure { "https" } else { "http" };
    let span = span(&request, scheme, method, route, &request_id.0, test);
    request.extensions_mut().insert(request_id.clone());
    let answered = next.call(request).instrument(span.clone()).await;
    let mut answer = match answered {
        Ok(answer) => with_error_body(answer),
        // Nothing below returns errors. If it did, actix would build a response with the error body.
        Err(error) => return Err(error),
    };

    let headers = answer.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&request_id.0) {
        headers.insert(X_REQUEST_ID, id);
    }
    if test {
        headers.insert(test_mode::X_TEST, HeaderValue::from_static("true"));
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    compress::unmark(headers);
    protect(headers, secure);
    let state = answer.request().app_data::<Data<AppState>>();
    if state.is_some_and(|state| state.is_draining()) {
        // HTTP/2 has no such header and omits it.
        let head = answer.response_mut().head_mut();
        head.set_connection_type(ConnectionType::Close);
    }
    span.in_scope(|| conclude(&span, method, route, answer.status(), start.elapsed()));
    Ok(answer)
}

/// Adds the headers that restrict browsers. A page has a separate policy.
fn protect(headers: &mut HeaderMap, secure: bool) {
    let mut insert = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    insert(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    insert(header::REFERRER_POLICY, "no-referrer");
    if secure {
        insert(header::STRICT_TRANSPORT_SECURITY, "max-age=31536000");
    }
    if !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        let nothing = "default-src 'none'; frame-ancestors 'none'";
        headers.insert(
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(nothing),
        );
    }
}

fn span(
    request: &ServiceRequest,
    scheme: &'static str,
    method: &'static str,
    route: &str,
    request_id: &str,
    test: bool,
) -> Span {
    let name = if route.is_empty() {
        method.to_owned()
    } else {
        format!("{method} {route}")
    };
    // The path of a link in a mail has a token, which anyone could use.
    let has_token = request.path().starts_with("/mail/");
    let path = if has_token { route } else { request.path() };
    let span = tracing::info_span!(
        "request",
        otel.name = name,
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = method,
        http.route = route,
        http.response.status_code = Empty,
        error.type = Empty,
        url.path = path,
        url.scheme = scheme,
        network.protocol.version = ?request.version(),
        request.id = request_id,
        request.test = test,
        api_key.id = Empty,
    );
    caller_trace(request).set_as_parent_of(&span);
    span
}

/// Returns the caller's trace. Only a key that has worked here is trusted: anyone else could choose what is sampled
/// and write into traces of others. The first request of a key on a replica starts a new trace.
fn caller_trace(request: &ServiceRequest) -> TraceContext {
    let headers = request.headers();
    if !headers.contains_key("traceparent") || !authenticate::is_known(request) {
        return TraceContext::default();
    }
    let text = |name: &str| {
        let value = headers.get(name)?.to_str().ok()?;
        Some(value.to_owned())
    };
    TraceContext {
        traceparent: text("traceparent"),
        tracestate: text("tracestate").filter(|state| state.len() <= MAX_TRACESTATE_BYTES),
    }
}

/// Logs and counts a finished request.
fn conclude(
    span: &Span,
    method: &'static str,
    route: &str,
    status: StatusCode,
    duration: Duration,
) {
    let code = status.as_u16().to_string();
    let failed = status.is_client_error() || status.is_server_error();
    let error_type = if failed { code.as_str() } else { "" };
    span.record("http.response.status_code", status.as_u16());
    if failed {
        span.record("error.type", error_type);
    }
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
    DURATION
        .with_label_values(&[method, route, code.as_str(), error_type])
        .observe(duration.as_secs_f64());
    let what = if route.is_empty() {
        "no such path"
    } else {
        route
    };
    let duration_ms = duration.as_micros() as f64 / 1_000.0;
    tracing::info!(duration_ms, "{method} {what} {code}");
}

/// Metric label of a method. Methods outside of RFC 9110 and 5789 share one label.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        Method::TRACE => "TRACE",
        Method::CONNECT => "CONNECT",
        _ => "_OTHER",
    }
}

/// Gives a framework error the standard error body.
fn with_error_body<B: MessageBody>(
    answer: ServiceResponse<B>,
) -> ServiceResponse<EitherBody<B, BoxBody>> {
    let status = answer.status();
    let is_json = answer
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
    if is_json || !(status.is_client_error() || status.is_server_error()) {
        return answer.map_into_left_body();
    }
    let (request, _) = answer.into_parts();
    let error = ApiError::Framework(status).error_response();
    ServiceResponse::new(request, error).map_into_right_body()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use actix_web::{http::StatusCode, test::TestRequest};

    use super::{conclude, span, template};

    #[actix_web::test]
    async fn tokens_of_links_in_mails_are_not_recorded() {
        let log = tempfile::NamedTempFile::new().unwrap();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(log.reopen().unwrap())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            for path in [
                "/mail/confirm/5ec2e7",
                "/mail/unsubscribe/5ec2e7",
                "/mail/confirm/5ec2e7/",
                "/v1/namespaces/n",
            ] {
                let request = TestRequest::with_uri(path).to_srv_request();
                let route = template(path);
                let span = span(&request, "https", "GET", route, "id", false);
                span.in_scope(|| conclude(&span, "GET", route, StatusCode::OK, Duration::ZERO));
            }
        });
        let log = std::fs::read_to_string(log.path()).unwrap();
        assert_eq!(log.lines().count(), 4, "{log}");
        assert!(!log.contains("5ec2e7"), "{log}");
        for path in ["/mail/unsubscribe/{token}", "/v1/namespaces/n"] {
            assert!(log.contains(&format!("url.path=\"{path}\"")), "{log}");
        }
    }
}
