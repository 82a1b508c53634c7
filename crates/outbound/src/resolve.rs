//! Resolves a host's name to its addresses.

use std::{
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

use domain::host_name::is_reserved_name;
use futures::future::{BoxFuture, FutureExt};
use hickory_resolver::{
    ResolverBuilder, TokioResolver,
    config::{
        ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig,
        ServerOrderingStrategy,
    },
    net::{NetError, runtime::TokioRuntimeProvider},
    proto::rr::Name,
};
use moka::sync::Cache;

/// A moved endpoint is found within minutes, even with a long TTL: within these ten, plus ten minutes of requests on an
/// open connection.
const MAX_AGE: Duration = Duration::from_secs(600);
/// Same for a name without addresses, or with addresses of only one family: those of the other may have been lost, which
/// the resolver does not tell.
const SHORT_MAX_AGE: Duration = Duration::from_secs(15);
const MAX_CACHED_NAMES: u64 = 8_192;
/// More than any site needs. The check must see every address of a name, so a name with more is refused.
const MAX_ADDRESSES: usize = 64;

/// Returns all addresses of a host. The guard checks them, the resolver does not.
pub trait Resolve: Send + Sync {
    /// `host` has no final dot; the error is a reason for people.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, String>>;
}

/// The name servers and the hosts file of this machine, with a cache that obeys the records' TTL.
pub struct SystemResolver {
    servers: TokioResolver,
    cache: Cache<String, Answer>,
}

#[derive(Clone)]
struct Answer {
    addresses: Result<Vec<IpAddr>, String>,
    valid_until: Instant,
}

impl SystemResolver {
    /// Creates the resolver. If the system configuration is unreadable, it uses only the hosts file and logs a
    /// warning.
    pub fn new() -> Self {
        Self::build(TokioResolver::builder_tokio().unwrap_or_else(|error| {
            tracing::warn!(%error, "no dns configuration found; names will not resolve");
            TokioResolver::builder_with_config(
                ResolverConfig::default(),
                TokioRuntimeProvider::default(),
            )
        }))
    }

    /// Uses these name servers, over UDP and TCP, instead of the machine's.
    pub fn with_name_servers(servers: &[SocketAddr]) -> Self {
        let server = |address: &SocketAddr| {
            let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut way| {
                way.port = address.port();
                way
            });
            NameServerConfig::new(address.ip(), true, connections.into())
        };
        let config = ResolverConfig::from_name_servers(servers.iter().map(server).collect());
        Self::build(TokioResolver::builder_with_config(
            config,
            TokioRuntimeProvider::default(),
        ))
    }

    fn build(mut builder: ResolverBuilder<TokioRuntimeProvider>) -> Self {
        let options = builder.options_mut();
        // Both families, so that the check sees every address of a name.
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        // Its entries are whole messages, which take megabytes if a name's owner wants it.
        options.cache_size = 0;
        // A server that does not answer leaves time for the next one within the callers' ten seconds.
        options.timeout = Duration::from_secs(2);
        // One after the other, in the order of resolv.conf: a network of containers has a server that knows their names,
        // and then those of the host, which do not.
        options.server_ordering_strategy = ServerOrderingStrategy::UserProvidedOrder;
        options.num_concurrent_reqs = 1;
        options.attempts = 2;
        Self {
            servers: builder
                .build()
                .expect("only tls to name servers can fail, and it is not compiled in"),
            cache: Cache::new(MAX_CACHED_NAMES),
        }
    }

    async fn ask(&self, host: &str) -> Result<Answer, String> {
        // The final dot disables the search list: under Kubernetes it would try
        // `acme.com.default.svc.cluster.local` first. Internal names, such as `n8n.automation.svc`, need it.
        let dot = if is_reserved_name(host) { "" } else { "." };
        let name = Name::from_ascii(format!("{host}{dot}")).map_err(|e| e.to_string())?;
        let found = self.servers.lookup_ip(name).await;
        let now = Instant::now();
        match found {
            Ok(found) if found.iter().count() > MAX_ADDRESSES => Ok(Answer {
                addresses: Err(format!("the name has more than {MAX_ADDRESSES} addresses")),
                valid_until: now + SHORT_MAX_AGE,
            }),
            Ok(found) => {
                let has = |is_of: fn(&IpAddr) -> bool| found.iter().any(|one| is_of(&one));
                let is_whole = has(IpAddr::is_ipv4) && has(IpAddr::is_ipv6);
                let max_age = if is_whole { MAX_AGE } else { SHORT_MAX_AGE };
                Ok(Answer {
                    addresses: Ok(found.iter().collect()),
                    valid_until: found.valid_until().min(now + max_age),
                })
            }
            Err(error) if error.is_nx_domain() || error.is_no_records_found() => Ok(Answer {
                addresses: Err(reason(&error)),
                valid_until: now + SHORT_MAX_AGE,
            }),
            Err(error) => Err(reason(&error)),
        }
    }
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self::new()
    }
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, String>> {
        async move {
            let cached = self.cache.get(host);
            if let Some(answer) = cached.filter(|answer| answer.valid_until > Instant::now()) {
                return answer.addresses;
            }
            let answer = self.ask(host).await?;
            self.cache.insert(host.to_owned(), answer.clone());
            answer.addresses
        }
        .boxed()
    }
}

fn reason(error: &NetError) -> String {
    if error.is_nx_domain() {
        "no such name".to_owned()
    } else if error.is_no_records_found() {
        "the name has no addresses".to_owned()
    } else {
        error.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{Resolve, SystemResolver};

    /// The hosts file of every machine has it, so this needs no network.
    #[tokio::test]
    async fn the_hosts_file_is_read_though_names_are_absolute() {
        let addresses = SystemResolver::new().resolve("localhost").await.unwrap();
        assert!(addresses.iter().all(std::net::IpAddr::is_loopback));
        assert!(!addresses.is_empty());
    }
}
