//! Shared state of all handlers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context as _;
use backbone::Backbone;
use bus::EventPublisher;
use domain::{Id, address::AddressPolicy, manager::Rules};
use runtime::Config;
use store::{quotas, rates::Limits, seal::Sealer};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::{
    ApiError,
    authenticate::{guesses::Guesses, key_cache::KeyCache},
    database::Database,
    feeds::{AccountFeeds, ConfiguredFeeds},
    in_flight::{InFlight, Reserved},
    link_rates::LinkRates,
    rates::RateLimiter,
    shares::Shares,
    sign_in::client::SignIns,
};

/// Number of previews that a replica computes for one account at a time.
const PREVIEWS: usize = 1;
/// Number of tools that a replica runs for one account at a time. Each holds its answer several times in memory.
const ASSISTANTS: usize = 2;

pub(crate) struct AppState {
    pub(crate) database: Arc<Database>,
    previews: Shares,
    assistants: Shares,
    pub(crate) events: EventPublisher,
    pub(crate) sealer: Sealer,
    pub(crate) keys: KeyCache,
    pub(crate) guesses: Guesses,
    pub(crate) link_rates: LinkRates,
    pub(crate) sign_in_rates: LinkRates,
    pub(crate) rates: Arc<RateLimiter>,
    pub(crate) in_flight: InFlight,
    bodies_in_flight: InFlight,
    /// Default quotas, for accounts without overrides.
    pub(crate) quotas: quotas::Limits,
    pub(crate) addresses: AddressPolicy,
    feeds: ConfiguredFeeds,
    /// How far back the first reading of a feed goes.
    pub(crate) backfill: Duration,
    /// True if this process itself terminates TLS.
    pub(crate) serves_tls: bool,
    pub(crate) cors_allowed_origins: Vec<String>,
    pub(crate) serves_console: bool,
    /// `None` if people cannot sign in.
    pub(crate) sign_ins: Option<SignIns>,
    /// How long ended sessions stay, so that the audit events that name them can be read.
    pub(crate) keep_sessions: Duration,
    /// Time limit for a whole body: a slow client must not hold a connection for long.
    pub(crate) body_timeout: Duration,
    draining: AtomicBool,
    /// Cancelled when the gateway stops waiting for incomplete bodies.
    bodies: CancellationToken,
}

impl AppState {
    pub(crate) fn new(config: &Config, backbone: &Backbone) -> anyhow::Result<Self> {
        Ok(Self {
            database: Arc::new(Database::new(
                backbone.pool.clone(),
                config.database.max_connections as usize,
            )),
            previews: Shares::each(PREVIEWS),
            assistants: Shares::each(ASSISTANTS),
            events: backbone.events.clone(),
            sealer: backbone::sealer(config).context("the API gateway seals header values")?,
            keys: KeyCache::default(),
            guesses: Guesses::new(config.gateway.trusted_proxies.clone()),
            link_rates: LinkRates::default(),
            sign_in_rates: LinkRates::default(),
            rates: Arc::new(RateLimiter::new(Limits {
                key: config.gateway.rate_limit_per_minute,
                account: config.gateway.account_rate_limit(),
            })),
            in_flight: InFlight::of_responses(),
            bodies_in_flight: InFlight::of_bodies(),
            quotas: backbone::default_quotas(config),
            addresses: config.outbound.address_policy(),
            feeds: ConfiguredFeeds::new(config),
            backfill: config.scanner.backfill,
            serves_tls: !config.gateway.tls_certificate_file.is_empty(),
            cors_allowed_origins: config.gateway.cors_allowed_origins.clone(),
            serves_console: config.gateway.console,
            sign_ins: SignIns::new(config).context("gateway.oidc")?,
            keep_sessions: config.retention.audit_events,
            body_timeout: config.gateway.body_timeout,
            draining: AtomicBool::new(false),
            bodies: CancellationToken::new(),
        })
    }

    /// Starts draining: each response asks its client to use another connection.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Returns true if [`AppState::drain`] was called.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Stops waiting for bodies: a client that has not sent its whole body is asked to retry.
    pub(crate) fn cut_bodies(&self) {
        self.bodies.cancel();
    }

    /// Token that [`AppState::cut_bodies`] cancels.
    pub(crate) fn bodies(&self) -> CancellationToken {
        self.bodies.clone()
    }

    pub(crate) fn feeds(&self) -> &ConfiguredFeeds {
        &self.feeds
    }

    /// Rules for Managers of an account, whose feeds are `feeds`.
    pub(crate) fn manager_rules<'a>(&'a self, feeds: &'a AccountFeeds<'_>) -> Rules<'a> {
        Rules {
            addresses: &self.addresses,
            feeds,
        }
    }

    /// Waits for a permit of `account` to run a tool.
    pub(crate) async fn assistant_for(
        &self,
        account: Id,
    ) -> Result<OwnedSemaphorePermit, ApiError> {
        self.assistants.take(account).await
    }

    /// Waits until `account` may have so many more bytes of bodies in memory.
    pub(crate) async fn reserve_body(
        &self,
        account: Id,
        bytes: usize,
    ) -> Result<Reserved, ApiError> {
        let reserved = self.bodies_in_flight.reserve(account, bytes).await;
        reserved.map_err(|error| match error {
            ApiError::TooManyReads => ApiError::TooManyAtOnce,
            other => other,
        })
    }

    /// Waits for a permit of `account` to compute a preview.
    pub(crate) async fn preview_for(&self, account: Id) -> Result<OwnedSemaphorePermit, ApiError> {
        self.previews.take(account).await
    }
}
