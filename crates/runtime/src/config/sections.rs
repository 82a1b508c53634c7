//! The sections of the configuration, with defaults and bounds.
//!
//! Doc comments here are read by operators: they become `docs/operations/configuration.md`.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use domain::address::AddressPolicy;
use ipnet::IpNet;
use secrecy::{ExposeSecret, SecretString};

use super::{
    filter::LogFilter,
    key::EncryptionKey,
    load::Loader,
    model::{Judge, Model},
    platform::PlatformConfig,
    reader::{Reader, Within},
    setting::choice,
};

macro_rules! sections {
    ($(
        $(#[doc = $about:literal])*
        pub struct $name:ident in $path:literal {
            $(
                $(#[doc = $doc:literal])*
                pub $field:ident: $type:ty = $default:expr $(, within $range:expr)?;
            )*
        }
        $(and { $(#[doc = $sub_doc:literal])* pub $sub:ident: Option<$sub_type:ty> })?
    )*) => {$(
        $(#[doc = $about])*
        #[derive(Debug, Clone)]
        pub struct $name {
            $($(#[doc = $doc])* pub $field: $type,)*
            $($(#[doc = $sub_doc])* pub $sub: Option<$sub_type>,)?
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* $($sub: None,)? }
            }
        }

        impl $name {
            fn read(&mut self, reader: &mut Reader) {
                reader.section($path, concat!($($about,)* ""));
                $(
                    let within = None$(.or(Some(Within::of($range))))?;
                    let doc = concat!($($doc,)* "");
                    reader.read(concat!($path, ".", stringify!($field)), doc, &mut self.$field, within);
                )*
                $(
                    let path = concat!($path, ".", stringify!($sub));
                    if let Some(given) = <$sub_type>::read_if_given(reader, path) {
                        self.$sub = Some(given);
                    }
                )?
            }
        }
    )*};
}

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// The whole configuration; every process reads all of it and uses its part.
#[derive(Debug, Clone, Default)]
pub struct Config {
    pub database: Database,
    pub bus: Bus,
    pub gateway: Gateway,
    pub ops: Ops,
    pub secrets: Secrets,
    pub outbound: Outbound,
    pub compiler: Compiler,
    pub scanner: Scanner,
    pub dispatcher: Dispatcher,
    pub retention: Retention,
    pub log: Log,
    pub platforms: Vec<PlatformConfig>,
    pub(super) origin: Option<Arc<Loader>>,
}

impl Outbound {
    /// Which addresses customers may name.
    #[must_use]
    pub fn address_policy(&self) -> AddressPolicy {
        AddressPolicy {
            allow_cidrs: self.allow_cidrs.clone(),
            deny_cidrs: self.deny_cidrs.clone(),
            allow_ports: self.allow_ports.clone(),
            allow_http: self.allow_http,
        }
    }
}

impl Config {
    /// What `earshot dev` starts from: an in-process bus, and loopback and plain HTTP allowed as
    /// customers' addresses. Its database is its own, so `database.url` stays empty.
    #[must_use]
    pub fn dev() -> Self {
        let mut config = Self::default();
        config.bus.url = SecretString::from(IN_PROCESS);
        config.gateway.listen = SocketAddr::from(([127, 0, 0, 1], 8080));
        config.gateway.drain_delay = Duration::ZERO;
        config.ops.listen = SocketAddr::from(([127, 0, 0, 1], 9090));
        config.outbound.allow_cidrs = vec![
            IpNet::new_assert(std::net::Ipv4Addr::new(127, 0, 0, 0).into(), 8),
            IpNet::new_assert(std::net::Ipv6Addr::LOCALHOST.into(), 128),
        ];
        config.outbound.allow_http = true;
        config.log.format = LogFormat::Text;
        config
    }

    pub(super) fn read(&mut self, reader: &mut Reader) {
        self.database.read(reader);
        self.bus.read(reader);
        self.gateway.read(reader);
        self.ops.read(reader);
        self.secrets.read(reader);
        self.outbound.read(reader);
        self.compiler.read(reader);
        self.scanner.read(reader);
        self.dispatcher.read(reader);
        self.retention.read(reader);
        self.log.read(reader);
        if let Some(given) = PlatformConfig::read_all(reader) {
            self.platforms = given;
        }
    }
}

/// The address of the bus that lives inside of one process.
const IN_PROCESS: &str = "in-process:";

sections! {
    /// PostgreSQL, the one source of truth.
    pub struct Database in "database" {
        /// Where the database is: `postgres://user:password@host:port/name`. Required by the
        /// services; `earshot dev` starts a private server where it is not given. With
        /// `?sslmode=verify-full` connections are encrypted, and the server's certificate and name
        /// verified; with `?sslmode=disable`, or neither that nor `ca_certificates_file`, they are not encrypted.
        pub url: SecretString = SecretString::default();
        /// A PEM file with the certificates of authorities by which the server is known, instead of the public
        /// ones. Connections are encrypted where it is given. Read again for each connection.
        pub ca_certificates_file: String = String::new();
        /// How many connections one process opens at most.
        pub max_connections: u32 = 10, within 2..=1_000;
    }

    /// The broker that carries events between the services.
    pub struct Bus in "bus" {
        /// Where RabbitMQ is: `amqp://user:password@host:port/vhost`, or `amqps://` for TLS.
        /// Required by the services. `in-process:` is the default of `earshot dev`, and for it alone.
        pub url: SecretString = SecretString::default();
        /// A PEM file with the certificates of authorities by which the broker is known, beside the public
        /// ones; for `amqps://`. Read again for each connection.
        pub ca_certificates_file: String = String::new();
        /// How many unacknowledged messages one consumer holds at most.
        pub prefetch: u16 = 32, within 1..=1_000;
    }

    /// The REST API.
    pub struct Gateway in "gateway" {
        /// The address and port that serve the API; port 0 picks a free one.
        pub listen: SocketAddr = SocketAddr::from(([0, 0, 0, 0], 8080));
        /// How many points of requests an API key may spend in a minute, all replicas together: a read
        /// costs 1, a write 5, `:test`, `:preview` and `:replay` 20. The same for all replicas.
        pub rate_limit_per_minute: u32 = 600, within 1..=1_000_000;
        /// Origins whose pages may call the API from a browser, such as `https://app.example.com`;
        /// `*` allows all.
        pub cors_allowed_origins: Vec<String> = Vec::new();
        /// Whether `/console/` serves the web console.
        pub console: bool = true;
        /// A PEM file with the certificate, and those that it hangs on, to serve HTTPS with. Read
        /// again when it changes. Without it the API is served as plain HTTP.
        pub tls_certificate_file: String = String::new();
        /// A PEM file with the private key of the certificate; given together with it.
        pub tls_key_file: String = String::new();
        /// How long the head of a request may take to arrive.
        pub head_timeout: Duration = 10 * SECOND, within SECOND..=MINUTE;
        /// How long the body of a request may take to arrive.
        pub body_timeout: Duration = 30 * SECOND, within SECOND..=5 * MINUTE;
        /// How long a connection without a request stays open, and how long a client may stop reading
        /// its answer. Longer than that of a load balancer in front.
        pub keep_alive: Duration = 75 * SECOND, within SECOND..=HOUR;
        /// How long requests are still taken after SIGTERM, with each answer closing its connection, so that
        /// load balancers learn that this replica is not ready before it is gone. Half of
        /// `ops.grace_period` at most; `earshot dev` takes none.
        pub drain_delay: Duration = 3 * SECOND, within Duration::ZERO..=MINUTE;
        /// Networks of proxies whose `X-Forwarded-For` is believed when addresses that come with keys
        /// that do not work are slowed down. Without it all clients behind a proxy count as one address.
        pub trusted_proxies: Vec<IpNet> = Vec::new();
    }

    /// Health and metrics, served beside whatever else a process serves.
    pub struct Ops in "ops" {
        /// The address and port that serve `/healthz`, `/readyz` and `/metrics`; port 0 picks a
        /// free one.
        pub listen: SocketAddr = SocketAddr::from(([0, 0, 0, 0], 9090));
        /// How long work in flight may take to finish after SIGTERM. Keep it below the time after
        /// which the process is killed, less 3 s for the last traces.
        pub grace_period: Duration = 20 * SECOND, within SECOND..=HOUR;
    }

    /// Keys of our own.
    pub struct Secrets in "secrets" {
        /// Keys that encrypt the header values of Connections at rest, each `<id>:<base64 of 32
        /// bytes>`. The first encrypts, all decrypt. Required by api-gateway and
        /// webhook-dispatcher. A file holds one key a line.
        pub encryption_keys: Vec<EncryptionKey> = Vec::new();
    }

    /// Requests to addresses that customers name: seed URLs and Connections.
    pub struct Outbound in "outbound" {
        /// Networks that may be reached although they are not public. `earshot dev` allows
        /// `127.0.0.0/8` and `::1/128`; a list given here replaces that.
        pub allow_cidrs: Vec<IpNet> = Vec::new();
        /// Networks that are never reached. They win over `allow_cidrs`.
        pub deny_cidrs: Vec<IpNet> = Vec::new();
        /// The only ports that may be reached; any where empty. Ports of other protocols, such as 25 and 6667, are
        /// always refused: the "bad ports" of the WHATWG Fetch standard.
        pub allow_ports: Vec<u16> = Vec::new();
        /// Whether Connections may be `http://`. `earshot dev` allows it.
        pub allow_http: bool = false;
    }

    /// Compiling Managers into instructions.
    pub struct Compiler in "compiler" {
        /// How old instructions get before their pages are read again.
        pub recompile_interval: Duration = 7 * DAY, within MINUTE..=365 * DAY;
    } and {
        /// A model that refines instructions; everything works without one.
        pub model: Option<Model>
    }

    /// Watching the platforms.
    pub struct Scanner in "scanner" {
        /// The shortest interval between two polls of a feed that adapts itself.
        pub poll_interval_min: Duration = 5 * SECOND, within Duration::from_millis(100)..=DAY;
        /// How far back the first poll of a feed reaches; 0 takes only what is new from then on.
        pub backfill: Duration = 24 * HOUR, within Duration::ZERO..=90 * DAY;
    } and {
        /// LLM filter: a model that decides on candidate posts. Everything works without one.
        pub judge: Option<Judge>
    }

    /// Delivering Scans to webhooks.
    pub struct Dispatcher in "dispatcher" {
        /// How long one attempt may take, from the name's lookup to the last byte of the answer.
        pub timeout: Duration = 10 * SECOND, within Duration::from_millis(100)..=2 * MINUTE;
        /// How long to wait after each failed attempt; after the last one the delivery is exhausted.
        pub retry_schedule: Vec<Duration> = vec![
            5 * SECOND, 30 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR,
            5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR,
        ];
        /// How many requests one endpoint gets at once from one replica.
        pub lane_limit: u32 = 8, within 1..=1_000;
        /// How many requests one replica makes at once.
        pub max_in_flight: u32 = 512, within 1..=100_000;
        /// How long a delivery may wait before it is given up as `expired`.
        pub max_age: Duration = 7 * DAY, within MINUTE..=365 * DAY;
    }

    /// How long things are kept.
    pub struct Retention in "retention" {
        /// Scans and their posts, dropped by whole weeks; what is not finished stays, and a post is kept
        /// five weeks longer than Scans.
        pub scans: Duration = 90 * DAY, within DAY..=3_650 * DAY;
        /// Deliveries and their attempts, dropped by whole weeks. What still waits by then is given up
        /// as `expired`.
        pub deliveries: Duration = 30 * DAY, within DAY..=3_650 * DAY;
    }

    /// What is written to stdout.
    pub struct Log in "log" {
        /// `json`, one object a line, or `text` for people. `earshot dev` writes `text`.
        pub format: LogFormat = LogFormat::Json;
        /// What is written: a level, or directives of `tracing` such as `info,scanner=debug`.
        pub filter: LogFilter = LogFilter::default();
    }
}

impl Bus {
    /// Whether this is the bus inside of one process.
    #[must_use]
    pub fn is_in_process(&self) -> bool {
        self.url.expose_secret() == IN_PROCESS
    }
}

choice! {
    /// How logs are written.
    pub enum LogFormat {
        Json = "json",
        Text = "text",
    }
}
