//! The sections of the configuration, with defaults and bounds.
//!
//! Operators read these doc comments: they become `docs/operations/configuration.md`.

use std::{net::SocketAddr, time::Duration};

use anyhow::Context as _;
use domain::{
    address::AddressPolicy,
    egress::{Egress, Exception, Proxy},
    host_name::HostName,
};
use ipnet::IpNet;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::environment;

use super::{
    authorities,
    filter::LogFilter,
    grant::Grant,
    key::EncryptionKey,
    reader::{Reader, Within, settings},
    setting::choice,
};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

impl Outbound {
    /// The policy for addresses from customers.
    pub fn address_policy(&self) -> AddressPolicy {
        AddressPolicy {
            allow_cidrs: self.allow_cidrs.clone(),
            deny_cidrs: self.deny_cidrs.clone(),
            allow_hosts: self.allow_hosts.clone(),
            allow_ports: self.allow_ports.clone(),
            allow_http: self.allow_http,
        }
    }

    /// The way out for requests to other servers.
    ///
    /// # Errors
    /// If the proxy or the file with authorities cannot be used.
    pub fn egress(&self) -> anyhow::Result<Egress> {
        let variable = environment::variable("SSL_CERT_FILE");
        let url = self.proxy.expose_secret();
        let exceptions = self.no_proxy.clone();
        let proxy = (!url.is_empty()).then(|| Proxy::parse(url, exceptions));
        let proxy = proxy.transpose().map_err(anyhow::Error::msg);
        Ok(Egress {
            proxy: proxy.context("outbound.proxy")?,
            authorities: authorities::read(&self.ca_certificates_file, variable.as_deref())?,
        })
    }
}

impl Gateway {
    /// Default limit of request points per minute of an account.
    pub fn account_rate_limit(&self) -> u32 {
        let keys = self.rate_limit_per_minute.saturating_mul(10);
        self.account_rate_limit_per_minute.unwrap_or(keys)
    }
}

/// The address of the in-process bus.
pub(super) const IN_PROCESS: &str = "in-process:";

settings! {
    /// PostgreSQL, the single source of truth.
    pub struct Database {
        /// Address of the database: `postgres://user:password@host:port/name`. Required by the services;
        /// `earshot dev` starts a private server if it is not set. With `?sslmode=verify-full` connections are
        /// encrypted, and the server's certificate and name are verified. With `?sslmode=disable`, or with
        /// neither a mode nor `ca_certificates_file`, connections are not encrypted. Several servers, such as a
        /// primary and its standbys, are separated by commas (`one:5432,two:5432`): a connection is made to the
        /// first one that answers within two seconds (`connect_timeout`) and accepts changes. A pooler such as
        /// PgBouncer must be in session mode; services and `earshot migrate` refuse one in transaction mode.
        pub url: SecretString = SecretString::default();
        /// CA bundle (PEM) used to verify the server, instead of the public authorities. If it is set,
        /// connections are encrypted. Read again for each connection.
        pub ca_certificates_file: String = String::new();
        /// Maximum number of connections per process.
        pub max_connections: u32 = 10, within 2..=1_000;
    }

    /// The broker that carries events between the services.
    pub struct Bus {
        /// Address of RabbitMQ: `amqp://user:password@host:port/vhost`, or `amqps://` for TLS. Required by the
        /// services. `in-process:` is the default of `earshot dev`, and works only there.
        pub url: SecretString = SecretString::default();
        /// CA bundle (PEM) used to verify the broker, in addition to the public authorities; only for
        /// `amqps://`. Read again for each connection.
        pub ca_certificates_file: String = String::new();
    }

    /// The REST API.
    pub struct Gateway {
        /// The address and port that serve the API; port 0 picks a free one.
        pub listen: SocketAddr = SocketAddr::from(([0, 0, 0, 0], 8080));
        /// Request points that an API key may spend per minute, over all replicas: a read costs 1, a write 5,
        /// `:test`, `:preview` and `:replay` 20. Set it to the same value in all replicas.
        pub rate_limit_per_minute: u32 = 600, within 1..=1_000_000;
        /// Request points that all keys of an account together may spend per minute, over all replicas. Ten times
        /// `rate_limit_per_minute` if it is not set. `earshot accounts set-quota` sets another limit for an account.
        /// Set it to the same value in all replicas.
        pub account_rate_limit_per_minute: Option<u32> = None, within Some(1)..=Some(1_000_000_000);
        /// Origins whose pages may call the API from a browser, such as `https://app.example.com`;
        /// `*` allows all.
        pub cors_allowed_origins: Vec<String> = Vec::new();
        /// True to serve the web console at `/console/`.
        pub console: bool = true;
        /// PEM file with the certificate and its chain, for serving HTTPS. Read again when it changes. Without
        /// it the API is served over plain HTTP.
        pub tls_certificate_file: String = String::new();
        /// PEM file with the private key of the certificate; required with it.
        pub tls_key_file: String = String::new();
        /// Time limit for receiving the head of a request.
        pub head_timeout: Duration = 10 * SECOND, within SECOND..=MINUTE;
        /// Time limit for receiving the body of a request.
        pub body_timeout: Duration = 30 * SECOND, within SECOND..=5 * MINUTE;
        /// How long a connection without a request stays open, and how long a client may stop reading its
        /// response. Must be longer than the idle timeout of a load balancer in front.
        pub keep_alive: Duration = 75 * SECOND, within SECOND..=HOUR;
        /// How long requests are still accepted after SIGTERM. Each response closes its connection, so load
        /// balancers notice that this replica is not ready before it stops. At most half of `ops.grace_period`;
        /// `earshot dev` uses 0.
        pub drain_delay: Duration = 3 * SECOND, within Duration::ZERO..=MINUTE;
        /// Networks of proxies whose `X-Forwarded-For` is trusted: for the address in audit events, and when
        /// clients with invalid keys are throttled. Without it all clients behind a proxy count as one address.
        pub trusted_proxies: Vec<IpNet> = Vec::new();
        and
        /// Sign-in to the console; optional.
        pub oidc: Option<Oidc>;
    }

    /// Optional: sign-in to the console by OpenID Connect. People sign in at your provider, and get an account and a role
    /// by their groups ([sign-in](sign-in.md)).
    pub struct Oidc {
        /// The provider's issuer, spelt exactly as in its discovery document. It is an `https://` URL. The gateway reads the
        /// document at this URL with `/.well-known/openid-configuration` appended. `http://` is allowed on this machine only.
        pub issuer: String;
        /// The client's id at the provider.
        pub client_id: String;
        /// The client's secret, unless it is a public client.
        pub client_secret: Option<SecretString> = None;
        /// The public address of the console, such as `https://earshot.example.com/console/`. Register it with
        /// `sign-in/callback` appended as the redirect URI of the client.
        pub console_url: Url;
        /// The provider's name on the button of the console, after "Sign in with".
        pub name: String = "OpenID Connect".to_owned();
        /// The scopes to ask for; `openid` has to be one of them.
        pub scopes: Vec<String> = ["openid", "profile", "email"].map(str::to_owned).to_vec();
        /// The claim of the ID token that lists the person's groups.
        pub groups_claim: String = "groups".to_owned();
        /// Roles of groups: `<group>=<account>:<role>`, where the role is `OWNER`, `EDITOR` or `VIEWER`. The first group that
        /// a person is in counts. A person who is in none is refused. Accounts have to exist.
        pub grants: Vec<Grant>;
        /// How long a session lasts. Changes at the provider take effect with the next one.
        pub session_length: Duration = 8 * HOUR, within 5 * MINUTE..=24 * HOUR;
    }

    /// Health and metrics, on a separate port.
    pub struct Ops {
        /// The address and port that serve `/healthz`, `/readyz` and `/metrics`; port 0 picks a
        /// free one.
        pub listen: SocketAddr = SocketAddr::from(([0, 0, 0, 0], 9090));
        /// How long work in progress may take to finish after SIGTERM. Set it at least 3 s below the time after
        /// which the process is killed: the last traces need these seconds.
        pub grace_period: Duration = 20 * SECOND, within SECOND..=HOUR;
    }

    /// Encryption keys.
    pub struct Secrets {
        /// Keys that encrypt the header values of Connections at rest, each `<id>:<base64 of 32 bytes>`. The
        /// first encrypts, all decrypt. Required by api-gateway and webhook-dispatcher. A file has one key per
        /// line.
        pub encryption_keys: Vec<EncryptionKey> = Vec::new();
    }

    /// Requests to addresses from customers, which are seed URLs, feeds and Connections. The proxy and the authorities
    /// also apply to platforms and models.
    pub struct Outbound {
        /// Networks that may be contacted although they are not public. `earshot dev` allows `127.0.0.0/8` and
        /// `::1/128`; a list set here replaces them.
        pub allow_cidrs: Vec<IpNet> = Vec::new();
        /// Networks that are never contacted. They override `allow_cidrs`.
        pub deny_cidrs: Vec<IpNet> = Vec::new();
        /// The only internal names that may be contacted, each with its subdomains: names without a dot and those
        /// that are never public, such as `receiver` and `svc.cluster.local`. If empty, all as soon as
        /// `allow_cidrs` has a network other than loopback. The addresses of a name must be allowed in any case.
        pub allow_hosts: Vec<HostName> = Vec::new();
        /// The only ports that may be contacted; all if empty. Ports of other protocols, such as 25 and 6667,
        /// are always refused: the "bad ports" of the WHATWG Fetch standard.
        pub allow_ports: Vec<u16> = Vec::new();
        /// True to allow `http://` for Connections. `earshot dev` allows it.
        pub allow_http: bool = false;
        /// Proxy for all these requests: `http://user:password@host:port`, or `https://` for TLS to the proxy;
        /// credentials are optional. `http://` addresses are forwarded, `https://` ones get a tunnel (CONNECT). Names
        /// that do not resolve here are left to the proxy, which must itself refuse internal networks
        /// ([security](../security.md#behind-a-proxy)).
        pub proxy: SecretString = SecretString::default();
        /// Hosts that are contacted without the proxy: names, each with its subdomains, and addresses or networks,
        /// which apply to URLs with an address. `localhost` and loopback never use the proxy.
        pub no_proxy: Vec<Exception> = Vec::new();
        /// CA bundle (PEM) used to verify servers, in addition to the public authorities, such as that of a company's
        /// own authority. The file that the variable `SSL_CERT_FILE` names if it is not set. Read at the start.
        pub ca_certificates_file: String = String::new();
    }

    /// Quotas of each account. `earshot accounts set-quota` sets another quota for an account. Give all
    /// replicas the same values.
    pub struct Quotas {
        /// How many Namespaces an account may have.
        pub namespaces: u32 = 100, within 0..=10_000;
        /// How many Managers an account may have.
        pub managers: u32 = 1_000, within 0..=1_000_000;
        /// How many Connections an account may have.
        pub connections: u32 = 1_000, within 0..=1_000_000;
        /// How many distinct feeds the enabled Managers of an account may watch.
        pub feeds: u32 = 2_000, within 0..=1_000_000;
        /// How many bytes the instructions and mutes of an account may have. Every scanner keeps them in memory.
        pub content_bytes: u32 = 20_000_000, within 0..=2_000_000_000;
        /// How many bytes of recent posts the feeds of an account may keep, each an equal part of them.
        pub recent_post_bytes: u32 = 2_000_000_000, within 1_000_000..=4_000_000_000;
        /// How many Scans an account may get on a day (UTC). Managers that find more pause until the next day, and then
        /// catch up.
        pub scans_per_day: u32 = 100_000, within 0..=1_000_000_000;
    }

    /// Compiling Managers into instructions.
    pub struct Compiler {
        /// Maximum age of instructions before their pages are read again.
        pub recompile_interval: Duration = 7 * DAY, within MINUTE..=365 * DAY;
        and
        /// A model that refines instructions; optional.
        pub model: Option<Model>;
    }

    /// Watching the platforms.
    pub struct Scanner {
        /// Shortest adaptive interval between two polls of a feed.
        pub poll_interval_min: Duration = 5 * SECOND, within Duration::from_millis(100)..=DAY;
        /// How far back the first poll of a feed reaches; with 0 it takes only new posts and those of the last minute.
        pub backfill: Duration = 24 * HOUR, within Duration::ZERO..=90 * DAY;
        and
        /// Reader: a small transformer in this process that decides on doubtful posts; optional.
        pub reader: Option<PostReader>;
        and
        /// LLM filter: a model that decides on candidate posts; optional.
        pub judge: Option<Judge>;
    }

    /// Delivering Scans to webhooks.
    pub struct Dispatcher {
        /// Time limit for one attempt, from the DNS lookup to the last byte of the response.
        pub timeout: Duration = 10 * SECOND, within Duration::from_millis(100)..=2 * MINUTE;
        /// Waits after each failed attempt; after the last one the delivery is exhausted.
        pub retry_schedule: Vec<Duration> = vec![
            5 * SECOND, 30 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR,
            5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR,
        ];
        /// Maximum number of concurrent requests to one endpoint per replica.
        pub lane_limit: u32 = 8, within 1..=1_000;
        /// Maximum number of concurrent requests per replica.
        pub max_in_flight: u32 = 512, within 1..=100_000;
        /// How long a delivery may wait before it ends as `expired`, from the last change of its Connection if that is later.
        pub max_age: Duration = 7 * DAY, within MINUTE..=365 * DAY;
        and
        /// A server that sends e-mail; optional.
        pub smtp: Option<Smtp>;
    }

    /// Retention periods of stored data.
    pub struct Retention {
        /// Scans and their posts, dropped by whole weeks; unfinished ones stay, and a post is kept five weeks
        /// longer than its Scans.
        pub scans: Duration = 90 * DAY, within DAY..=3_650 * DAY;
        /// Deliveries and their attempts, dropped by whole weeks. Deliveries that still wait then end as
        /// `expired`.
        pub deliveries: Duration = 30 * DAY, within DAY..=3_650 * DAY;
        /// Audit events: who changed what, and from which IP address.
        pub audit_events: Duration = 400 * DAY, within DAY..=3_650 * DAY;
    }

    /// Log lines on stdout.
    pub struct Log {
        /// `json`, one object per line, or `text` for people. `earshot dev` uses `text`.
        pub format: LogFormat = LogFormat::Json;
        /// Filter: a level, or directives of `tracing` such as `info,scanner=debug`.
        pub filter: LogFilter = LogFilter::default();
    }

    /// Optional: an OpenAI-compatible endpoint that refines the instructions of AUTOMATIC Managers. If it is
    /// slow or fails, a compile continues without it.
    pub struct Model {
        /// The address without `/chat/completions`. It may be in a private network; redirects are not followed.
        pub base_url: Url;
        /// The endpoint's name for the model.
        pub model: String;
        /// The bearer token, if the endpoint requires one.
        pub api_key: Option<SecretString> = None;
        /// Time limit for one answer. A compile takes at most this much longer.
        pub timeout: Duration = 20 * SECOND, within SECOND..=MINUTE;
        /// Maximum number of tokens in one answer.
        pub max_tokens: u32 = 1_500, within 64..=32_000;
    }

    /// Optional: the server that takes e-mail of Connections with the format `EMAIL`. Without it, their deliveries fail.
    pub struct Smtp {
        /// Name or address of the server.
        pub server: String;
        /// Port of the server.
        pub port: u16 = 587, within 1..=65_535;
        /// `starttls`, `tls` for TLS from the first byte (port 465), or `none`, which is only for a server on the same host or
        /// network. Mail is not sent if the server does not offer what is set here.
        pub encryption: SmtpEncryption = SmtpEncryption::StartTls;
        /// CA bundle (PEM) used to verify the server, in addition to the public authorities. Read at the start.
        pub ca_certificates_file: String = String::new();
        /// User name, if the server requires one.
        pub user: Option<String> = None;
        /// Password of the user; required with it.
        pub password: Option<SecretString> = None;
        /// Sender: an address such as `alerts@example.com`, or `Earshot <alerts@example.com>`.
        pub from: String;
        /// Name of this host for the server (EHLO). The domain of `from` if it is not set.
        pub hello_name: Option<String> = None;
        /// Address of the gateway, as recipients reach it, such as `https://earshot.example.com`. Links in mails begin with it.
        pub public_url: Url;
        /// Maximum number of mails per minute and replica; half of them for one account, fewer if others send too. Further
        /// ones wait.
        pub max_per_minute: u32 = 60, within 2..=100_000;
        /// Time limit for one mail, from connecting to the server's reply after the last byte. At a shutdown, mails end 3 s
        /// before `ops.grace_period`.
        pub timeout: Duration = MINUTE, within SECOND..=10 * MINUTE;
    }

    /// Optional: the reader. A small transformer in this process compares doubtful posts of Managers with a focus with what
    /// the customer sells. The limits apply to each replica.
    pub struct PostReader {
        /// The folder with `encoder.bin` and `head.bin` of this release.
        pub folder: String;
        /// How long the matches of a poll may take until the last reading begins. The others keep their score. A backfill has
        /// this time for each block of matches.
        pub max_wait: Duration = 2 * SECOND, within Duration::from_millis(100)..=8 * SECOND;
        /// Maximum number of posts that are judged for one Manager per day.
        pub max_per_manager_per_day: u32 = 1_000, within 1..=1_000_000;
    }

    /// Optional: the LLM filter. An OpenAI-compatible endpoint decides on the candidate posts of Managers with a
    /// focus, most uncertain first. The threshold decides on posts without an answer. The limits apply to each
    /// replica.
    pub struct Judge {
        /// The address without `/chat/completions`. It may be in a private network; redirects are not followed.
        pub base_url: Url;
        /// The endpoint's name for the model.
        pub model: String;
        /// The bearer token, if the endpoint requires one.
        pub api_key: Option<SecretString> = None;
        /// Time limit for one answer. The last question of an account in a poll is sent within this time of its first, so
        /// they take at most twice as long together. A backfill has this time for each block of matches.
        pub timeout: Duration = 3 * SECOND, within Duration::from_millis(100)..=8 * SECOND;
        /// Maximum number of tokens in one answer.
        pub max_tokens: u32 = 100, within 64..=32_000;
        /// The lowest score of a candidate, as a percentage of its Manager's threshold. With 100 the model only
        /// rejects posts.
        pub candidate_percent: u32 = 33, within 5..=100;
        /// Maximum number of questions per minute; half of them for one account.
        pub max_per_minute: u32 = 60, within 1..=100_000;
        /// Maximum number of questions for one Manager per day.
        pub max_per_manager_per_day: u32 = 20, within 1..=100_000;
        /// Maximum number of concurrent questions; half of them for one account.
        pub max_open: u32 = 4, within 1..=256;
    }
}

impl Judge {
    /// The model that decides.
    pub fn endpoint(&self) -> Model {
        Model {
            base_url: self.base_url.clone(),
            model: self.model.clone(),
            api_key: self.api_key.clone(),
            timeout: self.timeout,
            max_tokens: self.max_tokens,
        }
    }
}

impl Smtp {
    /// Certificates (DER) that verify the server in addition to the public authorities.
    ///
    /// # Errors
    /// If the file cannot be used.
    pub fn authorities(&self) -> anyhow::Result<Vec<Vec<u8>>> {
        if self.ca_certificates_file.is_empty() {
            return Ok(Vec::new());
        }
        let key = "dispatcher.smtp.ca_certificates_file";
        authorities::certificates(key, &self.ca_certificates_file)
    }

    /// User and password, if the server requires them.
    pub fn login(&self) -> Option<(&str, &str)> {
        let password = self.password.as_ref()?;
        Some((self.user.as_deref()?, password.expose_secret()))
    }
}

impl Bus {
    /// Returns true if this is the in-process bus.
    pub fn is_in_process(&self) -> bool {
        self.url.expose_secret() == IN_PROCESS
    }
}

choice! {
    /// How the connection to the server that takes e-mail is encrypted.
    pub enum SmtpEncryption {
        StartTls = "starttls",
        Tls = "tls",
        Plain = "none",
    }
}

choice! {
    /// Format of the log.
    pub enum LogFormat {
        Json = "json",
        Text = "text",
    }
}
