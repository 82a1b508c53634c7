//! The whole configuration, and the sources that it is read from.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use ipnet::IpNet;
use secrecy::SecretString;

use super::{
    platform::PlatformConfig,
    reader::Reader,
    sections::{
        Bus, Compiler, Database, Dispatcher, Gateway, IN_PROCESS, Log, LogFormat, Ops, Outbound,
        Quotas, Retention, Scanner, Secrets,
    },
};

macro_rules! config {
    ($($section:ident: $type:ident,)*) => {
        /// The whole configuration; every process reads all of it and uses its part.
        #[derive(Debug, Clone)]
        pub struct Config {
            $(pub $section: $type,)*
            pub platforms: Vec<PlatformConfig>,
            pub(super) origin: Option<Arc<Loader>>,
        }

        impl Config {
            /// The values of `base` replace the defaults.
            pub(super) fn read(reader: &mut Reader, base: Option<&Self>) -> Option<Self> {
                $(let $section = $type::read(reader, stringify!($section), base.map(|base| &base.$section));)*
                let platforms = PlatformConfig::read_all(reader)
                    .or_else(|| base.map(|base| base.platforms.clone()));
                Some(Self {
                    $($section: $section?,)*
                    platforms: platforms.unwrap_or_default(),
                    origin: None,
                })
            }
        }
    };
}

config! {
    database: Database,
    bus: Bus,
    gateway: Gateway,
    ops: Ops,
    secrets: Secrets,
    outbound: Outbound,
    quotas: Quotas,
    compiler: Compiler,
    scanner: Scanner,
    dispatcher: Dispatcher,
    retention: Retention,
    log: Log,
}

impl Default for Config {
    fn default() -> Self {
        Self::read(&mut Reader::default(), None).expect("each setting of a section has a default")
    }
}

impl Config {
    /// Base configuration of `earshot dev`: an in-process bus, and loopback and plain HTTP allowed as
    /// customers' addresses. It starts its own database, so `database.url` stays empty.
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
}

/// The sources of a process's configuration.
#[derive(Default)]
pub struct Loader {
    /// The other sources override it.
    pub base: Config,
    pub file: Option<PathBuf>,
    pub environment: Vec<(String, String)>,
    /// Uses `DATABASE_URL` as `database.url` if no other source names the database.
    pub plain_database_url: bool,
}
