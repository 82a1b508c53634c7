//! The HTTP server.
//!
//! Binding comes before serving, so that a caller that starts the gateway on port 0 learns the port first.
//!
//! This does what `actix_web::HttpServer` does, and adds what the latter does not support: a layer between the HTTP
//! library and the connection ([`crate::connection`]), limits on connections ([`crate::peers`]), and limits of HTTP/2
//! ([`crate::http2`]).
//!
//! A stop has two parts. During `gateway.drain_delay` the gateway serves as before, but readiness reports that the
//! replica is draining, and each HTTP/1 response tells its client to use another connection. Then it accepts no new
//! connections and completes the requests in progress.

use std::{
    net::{SocketAddr, TcpListener},
    num::NonZero,
    pin::pin,
    rc::Rc,
    sync::Arc,
    thread,
    time::Duration,
};

use actix_http::{HttpService, Protocol, error::DispatchError};
use actix_server::Server;
use actix_service::{
    Service as _, ServiceFactory as _, ServiceFactoryExt as _, fn_factory, fn_service, map_config,
};
use actix_web::{
    App,
    dev::AppConfig,
    middleware::{Compress, from_fn},
    web,
};
use anyhow::Context as _;
use backbone::Backbone;
use futures::future::ready;
use runtime::Config;
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};
use tokio_util::{either::Either, sync::CancellationToken};

use crate::{
    compress,
    connection::Connection,
    cors, http2,
    in_process::InProcess,
    inner_api, observe,
    own::Own,
    peers::{MAX_CONNECTIONS, Peers},
    routes,
    state::AppState,
    tls::Tls,
    upkeep,
};

/// More threads than these would only wait for the database.
const MAX_WORKERS: usize = 8;
/// How long input is still read after the last response, so that the client gets to read the response.
const LINGER: Duration = Duration::from_secs(5);

/// How long a body may still arrive after the stop began.
const BODY_GRACE: Duration = Duration::from_secs(2);
/// Maximum duration of a stop after the drain delay. Clients that neither send nor read are then disconnected.
const MAX_STOP: Duration = Duration::from_secs(10);

/// The address cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("gateway.listen: cannot listen on {address}")]
pub struct BindError {
    pub address: SocketAddr,
    #[source]
    pub source: std::io::Error,
}

/// A gateway that is bound to its address but does not serve yet.
pub struct Gateway {
    listener: TcpListener,
    address: SocketAddr,
    state: web::Data<AppState>,
    grace_period: Duration,
    drain_delay: Duration,
    head_timeout: Duration,
    keep_alive: Duration,
    tls: Option<Tls>,
    own: Option<Own>,
    config: Arc<Config>,
}

/// Binds `gateway.listen`.
///
/// # Errors
/// If the address is in use.
pub fn listen(config: &Config) -> Result<TcpListener, BindError> {
    let address = config.gateway.listen;
    TcpListener::bind(address).map_err(|source| BindError { address, source })
}

impl Gateway {
    /// Creates a gateway that will serve on `listener`.
    ///
    /// # Errors
    /// If a setting cannot be used.
    pub fn new(
        listener: TcpListener,
        config: &Config,
        backbone: &Backbone,
    ) -> anyhow::Result<Self> {
        let state = AppState::new(config, backbone)?;
        Ok(Self {
            address: listener.local_addr()?,
            listener,
            state: web::Data::new(state),
            grace_period: config.ops.grace_period,
            drain_delay: config.gateway.drain_delay,
            head_timeout: config.gateway.head_timeout,
            keep_alive: config.gateway.keep_alive,
            tls: Tls::new(&config.gateway)?,
            own: None,
            config: Arc::new(config.clone()),
        })
    }

    /// Declares that this gateway is the only user of the process's database connections, so that its workers take
    /// most of them.
    #[must_use]
    pub fn alone_in_process(mut self, config: &Config, backbone: &Backbone) -> Self {
        self.own = Own::take(config, &backbone.pool, workers());
        self
    }

    /// Address that it listens on. If port 0 was requested, this has the assigned port.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown`, continues for the drain delay, and then completes the requests in progress. Clients
    /// cannot prolong this: the delay takes at most half of the process's grace period, and the rest takes at most
    /// half of what is left and at most [`MAX_STOP`].
    ///
    /// # Errors
    /// If the server cannot be started, or fails.
    pub async fn serve(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let state = self.state;
        state.database.enter_runtime();
        let builder = Server::build()
            .workers(workers())
            .max_concurrent_connections(MAX_CONNECTIONS / workers())
            // The stop has a tighter limit below; this one only must not end earlier.
            .shutdown_timeout(MAX_STOP.as_secs() + 1)
            .disable_signals();
        // Cancelled after the server has stopped, because requests in progress still need points.
        let upkeep = CancellationToken::new();
        let kept = tokio::spawn(upkeep::run(state.clone().into_inner(), upkeep.clone()));
        if let Some(tls) = self.tls.clone() {
            tokio::spawn(tls.follow(upkeep.clone()));
        }
        let keys = backbone::follow_keys(
            Arc::clone(&self.config),
            state.sealer.clone(),
            backbone::KEYS_LOOK,
            upkeep.clone(),
        );
        tokio::spawn(keys);
        let _upkeep = upkeep.clone().drop_guard();
        let (head_timeout, keep_alive, tls) = (self.head_timeout, self.keep_alive, self.tls);
        let (app_state, own) = (state.clone(), self.own);
        let peers = Arc::new(Peers::new(self.config.gateway.trusted_proxies.clone()));
        let any_client = InProcess::any_client()?;
        let draining = builder.graceful_shutdown_signal();
        let server = builder
            .listen("api", self.listener, move || {
                // Runs on the worker's thread.
                if let Some(own) = &own {
                    own.enter();
                }
                let draining = draining.clone();
                let in_process = inner_api::start(app_state.clone(), any_client.clone());
                let app = App::new()
                    .app_data(app_state.clone())
                    .app_data(web::Data::new(in_process))
                    .wrap(from_fn(compress::spare_short))
                    .wrap(Compress::default())
                    .wrap(cors::cors(&app_state.cors_allowed_origins))
                    .wrap(from_fn(observe::observe))
                    .configure(routes::configure);
                let app = map_config(app, |()| AppConfig::default());
                let app = app.map_err(|error: actix_web::Error| error.error_response());
                let app = Rc::new(app);
                let (tls, peers) = (tls.clone(), Arc::clone(&peers));
                fn_factory(move || {
                    let (tls, peers, draining) = (tls.clone(), peers.clone(), draining.clone());
                    let app = Rc::clone(&app);
                    async move {
                        // HTTP/1 and HTTP/2 share the service.
                        let app = Rc::new(app.new_service(()).await?);
                        let shared = Rc::clone(&app);
                        let stop = draining.clone();
                        let http1 = HttpService::build()
                            .client_request_timeout(head_timeout)
                            .keep_alive(keep_alive)
                            .client_disconnect_timeout(LINGER)
                            .graceful_shutdown_signal(move || {
                                let stop = stop.clone();
                                async move { stop.notified().await }
                            })
                            .h1(fn_factory(move || ready(Ok::<_, ()>(Rc::clone(&shared)))));
                        let http1 = Rc::new(http1.new_service(()).await?);
                        Ok::<_, ()>(fn_service(move |io: TcpStream| {
                            let (tls, http1, app) = (tls.clone(), http1.clone(), app.clone());
                            let (peers, draining) = (Arc::clone(&peers), draining.clone());
                            async move {
                                // Responses are written whole, so waiting for more data only delays them.
                                let _ = io.set_nodelay(true);
                                let peer = io.peer_addr().ok();
                                let Some(_open) = peers.admit(peer) else {
                                    return Ok(());
                                };
                                let (stream, protocol) = match &tls {
                                    Some(tls) => tls.accept(io).await?,
                                    None => (Either::Left(io), Protocol::Http1),
                                };
                                let is_http1 = protocol == Protocol::Http1;
                                let connection = Connection::new(stream, is_http1, keep_alive);
                                if is_http1 {
                                    let ended = http1.call((connection.clone(), peer)).await;
                                    connection.end(&ended, LINGER).await;
                                    return ended;
                                }
                                let stop = async move { draining.notified().await };
                                http2::serve(connection, peer, app, head_timeout, keep_alive, stop)
                                    .await;
                                Ok::<_, DispatchError>(())
                            }
                        }))
                    }
                })
            })
            .context("cannot start the API server")?
            .run();

        let handle = server.handle();
        let server = tokio::spawn(server);
        shutdown.cancelled().await;
        state.drain();
        let delay = self.drain_delay.min(self.grace_period / 2);
        sleep(delay).await;
        let bound = ((self.grace_period - delay) / 2).min(MAX_STOP);
        let body_grace = BODY_GRACE.min(bound / 2);
        let mut stopped = pin!(handle.stop(true));
        if timeout(body_grace, &mut stopped).await.is_err() {
            state.cut_bodies();
            if timeout(bound - body_grace, stopped).await.is_err() {
                tracing::warn!("cutting off connections that did not end in time");
                // Dropping the server stops its workers at once.
                server.abort();
            }
        }
        let ended = server.await;
        upkeep.cancel();
        let _ = kept.await;
        match ended {
            Err(error) if error.is_cancelled() => Ok(()),
            ended => ended
                .context("the API server panicked")?
                .context("the API server failed"),
        }
    }
}

fn workers() -> usize {
    thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(MAX_WORKERS)
}
