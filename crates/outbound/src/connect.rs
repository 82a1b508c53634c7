//! Opens connections. This is the only place that does: no packet leaves for an address that was not checked
//! here, for any URL, redirect or DNS response.
//!
//! The name is resolved once, all its addresses are checked, and the socket is opened to exactly these
//! addresses. So a name that changes between check and use (DNS rebinding) has no effect. A connection that is
//! reused needs no second check: its peer was checked, even if its name resolves to another address now. It
//! takes no new requests after ten minutes, so that a changed name takes effect even under steady traffic.
//!
//! Behind a proxy, names are checked the same way, but the proxy resolves them again: what it may reach is up to the
//! operator (`docs/adr/0060`).

use std::{
    io,
    net::{IpAddr, SocketAddr},
    ops::Range,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use domain::{address::AddressPolicy, egress::Proxy, host_name, web_url};
use futures::{
    StreamExt,
    future::{BoxFuture, FutureExt},
    stream::FuturesUnordered,
};
use http::Uri;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

use crate::{
    Failure, Resolve,
    connection::{Io, MAX_STALL, Opened, Stream},
    trace::{Stage, Trace},
    tunnel::open_tunnel,
};

/// No caller waits longer. This limits connections whose caller continued with another one.
const LIMIT: Duration = Duration::from_secs(30);
/// Delay until the next address is tried in parallel to one that does not answer (RFC 8305 section 8).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// How long a connection takes new requests. Up to a fifth less, so that the connections of a busy minute are
/// not all opened again in the same minute.
const MAX_AGE: Duration = Duration::from_secs(600);
const MAX_AGE_JITTER: Range<f64> = 0.8..1.0;
/// Limits the connection attempts for a name with many addresses.
const MAX_ATTEMPTS: usize = 6;

/// Maximum number of bytes that TLS has taken and not sent.
const TLS_BUFFER_BYTES: usize = 16 * 1_024;

/// Limits the lookup of a name that the proxy resolves again: where only the proxy has outside DNS, name servers
/// may not answer at all.
const LOOKUP_FOR_PROXY: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(crate) struct Connector(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    policy: AddressPolicy,
    resolver: Arc<dyn Resolve>,
    tls: TlsConnector,
    proxy: Option<Proxy>,
    /// For the connection to the proxy, which speaks HTTP/1.1.
    proxy_tls: TlsConnector,
    max_age: Duration,
    max_stall: Duration,
}

impl Connector {
    pub(crate) fn new(
        policy: AddressPolicy,
        resolver: Arc<dyn Resolve>,
        tls: rustls::ClientConfig,
    ) -> Self {
        let mut proxy_tls = tls.clone();
        proxy_tls.alpn_protocols.clear();
        Self(Arc::new(Inner {
            policy,
            resolver,
            tls: TlsConnector::from(Arc::new(tls)),
            proxy: None,
            proxy_tls: TlsConnector::from(Arc::new(proxy_tls)),
            max_age: MAX_AGE,
            max_stall: MAX_STALL,
        }))
    }

    pub(crate) fn with_max_age(&self, max_age: Duration) -> Self {
        Self(Arc::new(Inner {
            max_age,
            ..Inner::clone(&self.0)
        }))
    }

    pub(crate) fn with_max_stall(&self, max_stall: Duration) -> Self {
        Self(Arc::new(Inner {
            max_stall,
            ..Inner::clone(&self.0)
        }))
    }

    pub(crate) fn with_proxy(&self, proxy: Option<Proxy>) -> Self {
        Self(Arc::new(Inner {
            proxy,
            ..Inner::clone(&self.0)
        }))
    }

    /// The proxy that gets requests for this host.
    pub(crate) fn proxy_for(&self, host: &str) -> Option<&Proxy> {
        self.0.proxy_for(host)
    }

    pub(crate) fn policy(&self) -> &AddressPolicy {
        &self.0.policy
    }
}

impl tower_service::Service<Uri> for Connector {
    type Response = Stream;
    type Error = Failure;
    type Future = BoxFuture<'static, Result<Stream, Failure>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let inner = Arc::clone(&self.0);
        let trace = Trace::current();
        async move {
            let opening = inner.open(&uri, &trace);
            tokio::time::timeout(LIMIT, opening)
                .await
                .unwrap_or_else(|_| Err(trace.timeout(LIMIT)))
        }
        .boxed()
    }
}

impl Inner {
    async fn open(&self, uri: &Uri, trace: &Arc<Trace>) -> Result<Stream, Failure> {
        let host = uri
            .host()
            .ok_or_else(|| Failure::invalid_request("no host"))?;
        let is_tls = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });

        if !self.policy.permits_port(port) {
            return Err(Failure::ForbiddenAddress {
                host: format!("{host}:{port}"),
                address: None,
            });
        }
        trace.resolving(host);
        let proxy = self.proxy_for(host);
        let (transport, address) = match proxy {
            None => {
                let started = Instant::now();
                let addresses = self.permitted_addresses(host).await?;
                trace.resolved(started);
                let (tcp, address) = connect_any(&addresses, port, trace).await?;
                let transport: Box<dyn Io> = Box::new(tcp);
                (transport, Some(address))
            }
            Some(proxy) => {
                self.check_before_proxy(host).await?;
                let target = is_tls.then(|| format!("{host}:{port}"));
                trace.enter(Stage::Connecting);
                (self.through(proxy, target.as_deref(), trace).await?, None)
            }
        };

        let mut is_h2 = false;
        let io: Box<dyn Io> = if is_tls {
            trace.enter(Stage::Securing);
            let started = Instant::now();
            let stream = secure(&self.tls, host, transport).await?;
            trace.secured(started);
            is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            Box::new(stream)
        } else {
            transport
        };
        trace.enter(Stage::Waiting);
        let opened = Opened {
            by: Arc::clone(trace),
            address,
            retires: Instant::now() + self.max_age.mul_f64(rand::random_range(MAX_AGE_JITTER)),
            is_h2,
            end: CancellationToken::new(),
        };
        let is_forwarded = proxy.is_some() && !is_tls;
        Ok(Stream::new(io, opened, is_forwarded, self.max_stall))
    }

    fn proxy_for(&self, host: &str) -> Option<&Proxy> {
        self.proxy.as_ref().filter(|proxy| proxy.is_used_for(host))
    }

    /// Refuses a host that is forbidden by its name or by the addresses that its name has here. A name without
    /// addresses here is left to the proxy, unless it is an internal one.
    async fn check_before_proxy(&self, host: &str) -> Result<(), Failure> {
        let lookup = tokio::time::timeout(LOOKUP_FOR_PROXY, self.permitted_addresses(host)).await;
        match lookup {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(Failure::Dns { .. })) | Err(_) if !host_name::is_reserved_name(host) => Ok(()),
            Ok(Err(failure)) => Err(failure),
            Err(_) => Err(Failure::Dns {
                host: host.to_owned(),
                reason: format!("no answer within {LOOKUP_FOR_PROXY:?}"),
            }),
        }
    }

    /// Connects to the proxy, and to `target` through it.
    async fn through(
        &self,
        proxy: &Proxy,
        target: Option<&str>,
        trace: &Trace,
    ) -> Result<Box<dyn Io>, Failure> {
        let url = proxy.url();
        let host = url.host_str().unwrap_or_default();
        let addresses = self.resolve(host).await.map_err(Failure::of_proxy)?;
        let port = url.port_or_known_default().unwrap_or(80);
        let started = Instant::now();
        // Customers see the trace, and the proxy's address is the operator's affair.
        let hidden = Trace::default();
        let (tcp, _) = connect_any(&addresses, port, &hidden)
            .await
            .map_err(Failure::of_proxy)?;
        let mut transport: Box<dyn Io> = Box::new(tcp);
        if url.scheme() == "https" {
            let secured = secure(&self.proxy_tls, host, transport).await;
            transport = Box::new(secured.map_err(Failure::of_proxy)?);
        }
        if let Some(target) = target {
            open_tunnel(&mut transport, target, proxy.authorization()).await?;
        }
        trace.connected(started);
        Ok(transport)
    }

    /// Resolves all addresses of `host`. Refuses the name if any of them is not permitted: there is no honest
    /// reason for a name with both public and internal addresses.
    async fn permitted_addresses(&self, host: &str) -> Result<Vec<IpAddr>, Failure> {
        let forbidden = |address| Failure::ForbiddenAddress {
            host: host.to_owned(),
            address,
        };
        let mut addresses = if let Some(literal) = web_url::literal_address(host) {
            vec![literal]
        } else if host_name::is_localhost(host) {
            let loopback = self.policy.permitted_loopback();
            if loopback.is_empty() {
                return Err(forbidden(Some(IpAddr::from([127, 0, 0, 1]))));
            }
            loopback
        } else if !self.policy.permits_name(host) {
            return Err(forbidden(None));
        } else {
            self.look_up(host).await?
        };
        if let Some(refused) = addresses.iter().find(|ip| !self.policy.permits(**ip)) {
            // Only the operator may learn the addresses of a name.
            tracing::debug!(server.address = host, address = %refused, "address refused");
            return Err(forbidden(Some(*refused)));
        }
        interleave(&mut addresses);
        addresses.truncate(MAX_ATTEMPTS);
        Ok(addresses)
    }

    /// Resolves the operator's own proxy, unchecked.
    async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, Failure> {
        if let Some(literal) = web_url::literal_address(host) {
            return Ok(vec![literal]);
        }
        let mut addresses = self.look_up(host).await?;
        interleave(&mut addresses);
        addresses.truncate(MAX_ATTEMPTS);
        Ok(addresses)
    }

    async fn look_up(&self, host: &str) -> Result<Vec<IpAddr>, Failure> {
        let failure = |reason| Failure::Dns {
            host: host.to_owned(),
            reason,
        };
        let answer = self
            .resolver
            .resolve(host.trim_end_matches('.'))
            .await
            .map_err(failure)?;
        if answer.is_empty() {
            return Err(failure("no addresses".to_owned()));
        }
        Ok(answer)
    }
}

async fn secure(
    tls: &TlsConnector,
    host: &str,
    transport: Box<dyn Io>,
) -> Result<tokio_rustls::client::TlsStream<Box<dyn Io>>, Failure> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(bare.to_owned()).map_err(Failure::invalid_request)?;
    tls.connect_with(name, transport, |tls| {
        tls.set_buffer_limit(Some(TLS_BUFFER_BYTES));
    })
    .await
    .map_err(|error| Failure::Tls {
        reason: error.to_string(),
    })
}

/// Alternates the families, IPv4 first, because every network routes it.
fn interleave(addresses: &mut Vec<IpAddr>) {
    let (v4, v6): (Vec<IpAddr>, Vec<IpAddr>) = addresses.drain(..).partition(IpAddr::is_ipv4);
    let (mut v4, mut v6) = (v4.into_iter(), v6.into_iter());
    loop {
        let before = addresses.len();
        addresses.extend(v4.next());
        addresses.extend(v6.next());
        if addresses.len() == before {
            return;
        }
    }
}

/// Connects to the first of `addresses` that answers. The next one is tried when one fails, or in parallel when
/// it is silent.
async fn connect_any(
    addresses: &[IpAddr],
    port: u16,
    trace: &Trace,
) -> Result<(TcpStream, IpAddr), Failure> {
    let mut untried = addresses.iter().copied();
    let mut attempts = FuturesUnordered::new();
    let mut failure = Failure::invalid_request("no addresses");
    trace.enter(Stage::Connecting);
    let started = Instant::now();
    loop {
        if let Some(address) = untried.next() {
            trace.tried(address);
            attempts.push(connect_one(address, port));
        } else if attempts.is_empty() {
            return Err(failure);
        }
        tokio::select! {
            Some(outcome) = attempts.next() => match outcome {
                Ok((tcp, address)) => {
                    trace.tried(address);
                    trace.connected(started);
                    // Requests are written at once, so waiting for more data only delays them. A failure here
                    // costs that delay.
                    let _ = tcp.set_nodelay(true);
                    return Ok((tcp, address));
                }
                Err(error) => failure = error,
            },
            () = tokio::time::sleep(ATTEMPT_DELAY), if untried.len() > 0 => {}
        }
    }
}

async fn connect_one(address: IpAddr, port: u16) -> Result<(TcpStream, IpAddr), Failure> {
    match TcpStream::connect(SocketAddr::new(address, port)).await {
        Ok(tcp) => Ok((tcp, address)),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Err(Failure::ConnectRefused { address })
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Err(Failure::Reset),
        Err(error) => Err(Failure::Unreachable {
            address,
            reason: error.to_string(),
        }),
    }
}
