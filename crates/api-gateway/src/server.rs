//! The HTTP server.
//!
//! Binding comes before serving, so that a caller that starts the gateway on port 0 learns the port first.
//!
//! This is what `actix_web::HttpServer` does, put together by hand for the one thing that it does not
//! let one do: to stand between the HTTP library and the connection ([`crate::wire`]).
//!
//! A stop has two parts. For `gateway.drain_delay` all goes on, while whoever sends requests here learns that
//! the replica is not ready, and each answer of HTTP/1 tells its client to go on over another connection.
//! Then no one new is taken, and what is being answered ends.

use std::{
    net::{SocketAddr, TcpListener},
    num::NonZero,
    pin::pin,
    sync::Arc,
    thread,
    time::Duration,
};

use actix_http::{HttpService, Protocol, error::DispatchError};
use actix_server::Server;
use actix_service::{
    Service as _, ServiceFactoryExt as _, apply_fn_factory, fn_service, map_config,
};
use actix_web::{
    App,
    dev::AppConfig,
    middleware::{Compress, from_fn},
    web,
};
use anyhow::Context as _;
use backbone::Backbone;
use runtime::Config;
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    compress, cors, farewell::Kept, observe, own::Own, routes, state::AppState, stream::Stream,
    tls::Tls, upkeep, wire::Wire,
};

/// More threads than these wait for the database anyway.
const MAX_WORKERS: usize = 8;
/// How long a client that still sends is listened to after its answer, so that it gets to read it.
const LINGER: Duration = Duration::from_secs(5);

/// How long a body may still arrive after the stop began.
const BODY_GRACE: Duration = Duration::from_secs(2);
/// For the whole stop; clients that neither send nor read on are cut off then.
const MAX_STOP: Duration = Duration::from_secs(10);

/// The address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("gateway.listen: cannot listen on {address}")]
pub struct BindError {
    pub address: SocketAddr,
    #[source]
    pub source: std::io::Error,
}

/// A gateway that has its address and does not answer yet.
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

/// Takes the address `gateway.listen`.
///
/// # Errors
/// When it is taken.
pub fn listen(config: &Config) -> Result<TcpListener, BindError> {
    let address = config.gateway.listen;
    TcpListener::bind(address).map_err(|source| BindError { address, source })
}

impl Gateway {
    /// A gateway that will answer on `listener`.
    ///
    /// # Errors
    /// That a setting cannot be used.
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

    /// The database connections of the process are for this gateway: its workers take most for themselves.
    #[must_use]
    pub fn alone_in_process(mut self, config: &Config, backbone: &Backbone) -> Self {
        self.own = Own::take(config, &backbone.pool, workers());
        self
    }

    /// Address that it listens on; if port 0 was requested, the port that it got.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `shutdown` and for the drain delay after it, and then what it has begun to answer. No
    /// client can make that last: the delay takes half of the process's grace period at most, and the rest
    /// half of what is left then, and [`MAX_STOP`].
    ///
    /// # Errors
    /// When the server cannot be started, or fails.
    pub async fn serve(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let state = self.state;
        state.enter_runtime();
        let builder = Server::build()
            .workers(workers())
            // The stop is bounded below, more finely; this only keeps the server from giving up before.
            .shutdown_timeout(MAX_STOP.as_secs() + 1)
            .disable_signals();
        // Ends when the server has: what it answers still needs points.
        let upkeep = CancellationToken::new();
        let kept = tokio::spawn(upkeep::keep(state.clone().into_inner(), upkeep.clone()));
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
        let draining = builder.graceful_shutdown_signal();
        let server = builder
            .listen("api", self.listener, move || {
                // On the worker's thread.
                if let Some(own) = &own {
                    own.enter();
                }
                let draining = draining.clone();
                let app = App::new()
                    .app_data(app_state.clone())
                    .wrap(from_fn(compress::spare_short))
                    .wrap(Compress::default())
                    .wrap(cors::cors(&app_state.cors_allowed_origins))
                    .wrap(from_fn(observe::observe))
                    .configure(routes::configure);
                let app = map_config(app, |()| AppConfig::default());
                let app = app.map_err(|error: actix_web::Error| error.error_response());
                let http = HttpService::build()
                    .client_request_timeout(head_timeout)
                    .keep_alive(keep_alive)
                    .client_disconnect_timeout(LINGER)
                    .graceful_shutdown_signal(move || {
                        let draining = draining.clone();
                        async move { draining.notified().await }
                    })
                    .finish(app);
                let tls = tls.clone();
                fn_service(move |io: TcpStream| {
                    let tls = tls.clone();
                    async move {
                        // Answers are whole when they are written: waiting for more only delays them.
                        let _ = io.set_nodelay(true);
                        let peer = io.peer_addr().ok();
                        let (stream, protocol) = match &tls {
                            Some(tls) => tls.accept(io).await?,
                            None => (Stream::Plain(io), Protocol::Http1),
                        };
                        let wire = Wire::new(stream, protocol == Protocol::Http1, keep_alive);
                        Ok::<_, DispatchError>((Kept::new(wire), protocol, peer))
                    }
                })
                .and_then(apply_fn_factory(
                    http,
                    |(kept, protocol, peer), http| {
                        let served = http.call((Kept::clone(&kept), protocol, peer));
                        async move {
                            let ended = served.await;
                            if protocol == Protocol::Http1 {
                                kept.end(&ended, LINGER).await;
                            }
                            ended
                        }
                    },
                ))
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
                // Dropped, it stops its workers at once.
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
