//! The client: one guarded connection pool, shared by its clones.

use std::{pin::pin, sync::Arc, time::Duration};

use domain::{
    address::AddressPolicy,
    egress::{Egress, Proxy},
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Uri,
    header::{HOST, PROXY_AUTHORIZATION, USER_AGENT},
};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy,
    rt::{TokioExecutor, TokioTimer},
};
use rustls::RootCertStore;
use tracing::{Instrument as _, field::Empty};
use url::{Position, Url};

use crate::{
    Failure, Resolve, SystemResolver,
    body::{Body, PIECE_BYTES},
    connect::Connector,
    connection::Checkout,
    trace::{TRACE, Trace},
};

/// Idle connections are closed before servers usually close them (Node after 5 s), because a request on a
/// closing connection fails.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// Same as the number of concurrent requests for one Connection.
const MAX_IDLE_PER_HOST: usize = 8;
/// Maximum number of bytes of an HTTP/2 response that are received before they are read.
const WINDOW_BYTES: u32 = 256 * 1_024;
/// Enough for the head of any normal response.
const MAX_HEAD_BYTES: usize = 64 * 1_024;

/// Sends requests to addresses from customers. Cloning is cheap and shares the connections.
#[derive(Clone)]
pub struct Client {
    http: legacy::Client<Connector, Body>,
    connector: Connector,
    user_agent: HeaderValue,
}

impl Client {
    /// Trusts the public certificate authorities and this machine's name servers.
    pub fn new(policy: AddressPolicy, user_agent: &str) -> Self {
        let resolver = Arc::new(SystemResolver::new());
        Self::with_parts(policy, user_agent, resolver, public_authorities())
    }

    /// Same as [`Self::new`], by the operator's way out.
    ///
    /// # Errors
    /// If none of its certificates can be used.
    pub fn leaving_by(
        egress: &Egress,
        policy: AddressPolicy,
        user_agent: &str,
    ) -> Result<Self, rustls::Error> {
        let mut roots = public_authorities();
        let authorities = egress.authorities.iter().map(|der| der.clone().into());
        // Some of a system's bundle may be of forms that no one uses any more.
        let (used, _) = roots.add_parsable_certificates(authorities);
        if used == 0 && !egress.authorities.is_empty() {
            return Err(rustls::CertificateError::BadEncoding.into());
        }
        let resolver = Arc::new(SystemResolver::new());
        let client = Self::with_parts(policy, user_agent, resolver, roots);
        Ok(client.with_proxy(egress.proxy.clone()))
    }

    /// Creates a client with another resolver and other certificate authorities; the guard stays the same.
    pub fn with_parts(
        policy: AddressPolicy,
        user_agent: &str,
        resolver: Arc<dyn Resolve>,
        roots: RootCertStore,
    ) -> Self {
        Self::over(
            Connector::new(policy, resolver, tls_config(roots)),
            user_agent,
        )
    }

    /// Sets how long connections take new requests, instead of ten minutes.
    #[must_use]
    pub fn with_connection_age(self, max_age: Duration) -> Self {
        Self {
            user_agent: self.user_agent,
            ..Self::over(self.connector.with_max_age(max_age), "")
        }
    }

    /// Sets how long a peer may take no bytes, instead of ten seconds: at least as long as a request may take.
    #[must_use]
    pub fn with_max_stall(self, max_stall: Duration) -> Self {
        Self {
            user_agent: self.user_agent,
            ..Self::over(self.connector.with_max_stall(max_stall), "")
        }
    }

    /// Sends requests through a proxy, except those that it is not used for.
    #[must_use]
    pub fn with_proxy(self, proxy: Option<Proxy>) -> Self {
        Self {
            user_agent: self.user_agent,
            ..Self::over(self.connector.with_proxy(proxy), "")
        }
    }

    fn over(connector: Connector, user_agent: &str) -> Self {
        let http = legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(MAX_IDLE_PER_HOST)
            .http1_max_buf_size(MAX_HEAD_BYTES)
            .http2_max_header_list_size(64 * 1_024)
            // Limits what a server sends of a body that is not read yet.
            .http2_initial_stream_window_size(WINDOW_BYTES)
            // Of each request, since it can be given up.
            .http2_max_send_buf_size(PIECE_BYTES)
            // A dead HTTP/2 connection must not block all requests to its host until TCP notices.
            .http2_keep_alive_interval(Duration::from_secs(5))
            .http2_keep_alive_timeout(Duration::from_secs(5))
            .build(connector.clone());
        Self {
            http,
            connector,
            user_agent: HeaderValue::from_str(user_agent)
                .unwrap_or_else(|_| HeaderValue::from_static("Earshot")),
        }
    }

    /// The client's address policy.
    pub fn policy(&self) -> &AddressPolicy {
        self.connector.policy()
    }

    /// Sends one request and waits for the head of its response. Returns it with its connection.
    pub(crate) async fn send(
        &self,
        method: Method,
        url: &Url,
        mut headers: HeaderMap,
        body: Body,
        trace: Arc<Trace>,
    ) -> Result<(http::Response<Incoming>, Checkout), Failure> {
        // A fragment stays with the client (RFC 9110 7.1).
        let uri: Uri = url[..Position::AfterQuery]
            .parse()
            .map_err(Failure::invalid_request)?;
        headers.remove(HOST);
        headers
            .entry(USER_AGENT)
            .or_insert_with(|| self.user_agent.clone());
        // A tunnel has its own.
        let proxy = url.host_str().filter(|_| url.scheme() == "http");
        let proxy = proxy.and_then(|host| self.connector.proxy_for(host));
        if let Some(authorization) = proxy.and_then(Proxy::authorization) {
            let value = HeaderValue::from_str(authorization);
            let mut value = value.map_err(Failure::invalid_request)?;
            value.set_sensitive(true);
            headers.insert(PROXY_AUTHORIZATION, value);
        }
        // Only the host, because paths are often secrets.
        let span = tracing::info_span!(
            "request",
            otel.name = method.as_str(),
            otel.kind = "client",
            otel.status_code = Empty,
            http.request.method = method.as_str(),
            http.response.status_code = Empty,
            error.type = Empty,
            server.address = url.host_str(),
            server.port = url.port_or_known_default(),
        );
        let mut request = http::Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        let checkout = Checkout::of(&mut request);
        let sending = TRACE.scope(trace, self.http.request(request));
        let mut sending = pin!(sending.instrument(span.clone()));
        // If this future is dropped, the checkout ends before the connection can return to the pool.
        let mut checkout = checkout;
        let answer = sending.as_mut().await;
        let answer = answer.map_err(|error| Failure::of(&error));
        match &answer {
            Ok(answer) => {
                let status = answer.status();
                span.record("http.response.status_code", status.as_u16());
                if status.is_client_error() || status.is_server_error() {
                    span.record("error.type", status.as_str());
                    span.record("otel.status_code", "ERROR");
                }
                checkout.has_response = true;
            }
            Err(failure) => {
                span.record("error.type", failure.word());
                span.record("otel.status_code", "ERROR");
            }
        }
        answer.map(|answer| (answer, checkout))
    }
}

/// Later values replace earlier ones of the same name.
pub(crate) fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, Failure> {
    let mut map = HeaderMap::with_capacity(headers.len() + 4);
    for (name, value) in headers {
        // Neither name nor value is repeated: either may be a misplaced secret.
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(Failure::invalid_request)?;
        let mut value = HeaderValue::from_str(value).map_err(Failure::invalid_request)?;
        value.set_sensitive(true);
        map.insert(name, value);
    }
    Ok(map)
}

fn public_authorities() -> RootCertStore {
    RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned())
}

fn tls_config(roots: RootCertStore) -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has cipher suites for the default versions of tls")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}
