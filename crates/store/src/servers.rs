//! Connects to the first server of a database URL that answers and takes writes.
//!
//! As with libpq, a URL may name several servers: `postgres://user@one,two/database`. They are tried in this order,
//! each with its own time limit. A frozen server still accepts connections, so without the limit it would use up the
//! time of the server that has replaced it.

use std::time::Duration;

use domain::error_chain;
use rand::seq::SliceRandom;
use tokio::time::timeout;
use tokio_postgres::{
    Client, Config, Connection, Socket,
    config::{Host, LoadBalanceHosts, TargetSessionAttrs},
    tls::MakeTlsConnect,
};

/// Limit for each of several servers, if the URL gives no `connect_timeout`.
const LIMIT: Duration = Duration::from_secs(2);

/// Connects to one of the servers of `config`.
///
/// # Errors
/// If no server answers in time and takes writes. The error gives the reason of each server.
pub(crate) async fn connect<T>(
    config: &Config,
    tls: T,
) -> Result<(Client, Connection<Socket, T::Stream>), String>
where
    T: MakeTlsConnect<Socket> + Clone,
{
    let limit = limit(config);
    let mut reasons = Vec::new();
    for server in each(config) {
        let attempt = server.connect(tls.clone());
        let outcome = match limit {
            Some(limit) => timeout(limit, attempt).await,
            None => Ok(attempt.await),
        };
        let reason = match outcome {
            Ok(Ok(connected)) => return Ok(connected),
            Ok(Err(error)) => error_chain(&error),
            Err(_elapsed) => format!("no answer within {:?}", limit.unwrap_or_default()),
        };
        reasons.push(format!("{}: {reason}", names(&server)));
    }
    Err(reasons.join("; "))
}

/// Returns the longest time that [`connect`] takes; `None` if the operating system alone limits it.
pub(crate) fn longest_connect(config: &Config) -> Option<Duration> {
    let count = u32::try_from(count(config)).unwrap_or(u32::MAX);
    limit(config).map(|limit| limit.saturating_mul(count))
}

/// Limit for each server.
fn limit(config: &Config) -> Option<Duration> {
    let own = config.get_connect_timeout().copied();
    own.or_else(|| (count(config) > 1).then_some(LIMIT))
}

fn count(config: &Config) -> usize {
    config.get_hosts().len().max(config.get_hostaddrs().len())
}

/// Returns the settings for each server, in the order of the attempts.
///
/// The driver has no limit for each server, only one for each TCP connection.
fn each(config: &Config) -> Vec<Config> {
    let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
    let (ports, count) = (config.get_ports(), count(config));
    let fits = |length: usize| length <= 1 || length == count;
    // The driver explains what is wrong with other numbers of them.
    if count <= 1 || !fits(hosts.len()) || !fits(addresses.len()) || !fits(ports.len()) {
        return vec![config.clone()];
    }
    let mut servers: Vec<Config> = (0..count)
        .map(|at| {
            let mut server = without_servers(config);
            match hosts.get(at) {
                Some(Host::Tcp(name)) => {
                    server.host(name);
                }
                #[cfg(unix)]
                Some(Host::Unix(path)) => {
                    server.host_path(path);
                }
                None => {}
            }
            if let Some(address) = addresses.get(at) {
                server.hostaddr(*address);
            }
            if let Some(port) = ports.get(at).or(ports.first()) {
                server.port(*port);
            }
            server
        })
        .collect();
    if config.get_load_balance_hosts() == LoadBalanceHosts::Random {
        servers.shuffle(&mut rand::rng());
    }
    servers
}

/// Copies everything except for the servers, which the driver cannot replace.
fn without_servers(config: &Config) -> Config {
    let mut copy = Config::new();
    copy.ssl_mode(config.get_ssl_mode());
    copy.ssl_negotiation(config.get_ssl_negotiation());
    copy.keepalives(config.get_keepalives());
    copy.keepalives_idle(config.get_keepalives_idle());
    copy.channel_binding(config.get_channel_binding());
    copy.load_balance_hosts(config.get_load_balance_hosts());
    // Any other kind of server is of no use: every service writes.
    copy.target_session_attrs(match config.get_target_session_attrs() {
        TargetSessionAttrs::Any => TargetSessionAttrs::ReadWrite,
        other => other,
    });
    if let Some(user) = config.get_user() {
        copy.user(user);
    }
    if let Some(password) = config.get_password() {
        copy.password(password);
    }
    if let Some(name) = config.get_dbname() {
        copy.dbname(name);
    }
    if let Some(options) = config.get_options() {
        copy.options(options);
    }
    if let Some(name) = config.get_application_name() {
        copy.application_name(name);
    }
    if let Some(limit) = config.get_connect_timeout() {
        copy.connect_timeout(*limit);
    }
    if let Some(limit) = config.get_tcp_user_timeout() {
        copy.tcp_user_timeout(*limit);
    }
    if let Some(interval) = config.get_keepalives_interval() {
        copy.keepalives_interval(interval);
    }
    if let Some(count) = config.get_keepalives_retries() {
        copy.keepalives_retries(count);
    }
    copy
}

fn names(config: &Config) -> String {
    let ports = config.get_ports();
    let named = config.get_hosts().iter().enumerate().map(|(at, host)| {
        // One port may apply to all hosts; without any, the default port applies.
        let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        }
    });
    named.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str) -> Config {
        url.parse().unwrap()
    }

    #[test]
    fn each_server_has_all_settings_of_the_url() {
        let query = "target_session_attrs=read-write&connect_timeout=3&tcp_user_timeout=4&application_name=a\
                     &options=-c%20x%3D1&keepalives_idle=5&keepalives_interval=6&keepalives_retries=7\
                     &channel_binding=require&sslnegotiation=direct";
        let whole = config(&format!("postgres://u:p@one:1,two,[::1]:3/d?{query}"));
        let single = |server: &str| config(&format!("postgres://u:p@{server}/d?{query}"));
        assert_eq!(each(&whole), ["one:1", "two:5432", "[::1]:3"].map(single));
        assert_eq!(longest_connect(&whole), Some(Duration::from_secs(9)));
    }

    #[test]
    fn several_servers_must_take_writes() {
        let kinds = |url: &str| -> Vec<_> {
            let servers = each(&config(url));
            let kinds = servers.iter().map(Config::get_target_session_attrs);
            kinds.collect()
        };
        assert_eq!(kinds("postgres://one/d"), [TargetSessionAttrs::Any]);
        assert_eq!(
            kinds("postgres://one,two/d"),
            [TargetSessionAttrs::ReadWrite; 2]
        );
    }

    #[test]
    fn a_single_server_has_the_limit_of_the_url() {
        for (url, longest) in [
            ("postgres://one/d", None),
            ("postgres://one/d?connect_timeout=3", Some(3)),
            ("postgres://one,two/d", Some(4)),
        ] {
            let longest = longest.map(Duration::from_secs);
            assert_eq!(longest_connect(&config(url)), longest, "{url}");
        }
    }
}
