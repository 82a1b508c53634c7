//! Rules that the bounds of a single number cannot express.

use std::{collections::BTreeSet, time::Duration};

use domain::{egress::Proxy, host_name::is_localhost, web_url::literal_address};
use secrecy::ExposeSecret;
use url::Url;

use super::{database_tls, reader::Reader, root::Config, sections::Oidc};

const MAX_RETRIES: usize = 100;
const MAX_RETRY_WAIT: Duration = Duration::from_secs(30 * 86_400);

const NO_HOST: &str = "names no host";
const NO_PORT: &str = "has a port that is not a number between 1 and 65535";

/// Reports settings that contradict each other.
pub(super) fn check(config: &Config, reader: &mut Reader) {
    let url = config.database.url.expose_secret();
    if !url.is_empty()
        && let Err(reason) = check_database(url)
            .and_then(|()| database_tls::check(url, &config.database.ca_certificates_file))
    {
        reader.reject("database.url", reason);
    }
    let url = config.bus.url.expose_secret();
    if !url.is_empty()
        && !config.bus.is_in_process()
        && let Err(reason) = check_bus(url)
    {
        reader.reject("bus.url", reason);
    }
    if !config.bus.ca_certificates_file.is_empty() && url.starts_with("amqp://") {
        let reason = "is for encrypted connections: bus.url must begin with amqps://";
        reader.reject("bus.ca_certificates_file", reason);
    }

    let proxy = config.outbound.proxy.expose_secret();
    if !proxy.is_empty()
        && let Err(reason) = Proxy::parse(proxy, Vec::new())
    {
        reader.reject("outbound.proxy", reason);
    }

    for (index, origin) in config.gateway.cors_allowed_origins.iter().enumerate() {
        if !is_origin(origin) {
            let reason = format!(
                "item {}: expected `*` or an origin such as https://app.example.com, not `{origin}`",
                index + 1
            );
            reader.reject("gateway.cors_allowed_origins", reason);
        }
    }
    let (certificate, key) = (
        &config.gateway.tls_certificate_file,
        &config.gateway.tls_key_file,
    );
    if certificate.is_empty() != key.is_empty() {
        let (there, missing) = if key.is_empty() {
            ("gateway.tls_certificate_file", "gateway.tls_key_file")
        } else {
            ("gateway.tls_key_file", "gateway.tls_certificate_file")
        };
        reader.reject(there, format!("needs {missing} too"));
    }

    if let Some(oidc) = &config.gateway.oidc {
        check_oidc(oidc, reader);
    }

    let compiler = config.compiler.model.as_ref().map(|model| &model.base_url);
    let judge = config.scanner.judge.as_ref().map(|judge| &judge.base_url);
    for (section, url) in [("compiler.model", compiler), ("scanner.judge", judge)] {
        let Some(url) = url else {
            continue;
        };
        let key = format!("{section}.base_url");
        if !matches!(url.scheme(), "http" | "https") {
            reader.reject(&key, "expected a URL that begins with https:// or http://");
        } else if !url.username().is_empty() || url.password().is_some() {
            reader.reject(&key, "must not contain credentials; use `api_key`");
        } else if url.query().is_some() || url.fragment().is_some() {
            reader.reject(&key, "must end with its path");
        }
    }

    if let Some(smtp) = &config.dispatcher.smtp {
        let url = &smtp.public_url;
        if !matches!(url.scheme(), "http" | "https") {
            let reason = "expected a URL that begins with https:// or http://";
            reader.reject("dispatcher.smtp.public_url", reason);
        } else if !url.username().is_empty()
            || url.password().is_some()
            || url.query().is_some()
            || url.fragment().is_some()
        {
            let reason = "must have only a host and a path";
            reader.reject("dispatcher.smtp.public_url", reason);
        }
        if smtp.user.is_some() != smtp.password.is_some() {
            let (there, missing) = match &smtp.user {
                Some(_) => ("dispatcher.smtp.user", "dispatcher.smtp.password"),
                None => ("dispatcher.smtp.password", "dispatcher.smtp.user"),
            };
            reader.reject(there, format!("needs {missing} too"));
        }
    }

    let mut ids = BTreeSet::new();
    for key in &config.secrets.encryption_keys {
        if !ids.insert(key.id()) {
            let reason = format!("two keys have the id `{}`", key.id());
            reader.reject("secrets.encryption_keys", reason);
        }
    }

    let schedule = &config.dispatcher.retry_schedule;
    if schedule.len() > MAX_RETRIES {
        let reason = format!("has more than {MAX_RETRIES} entries");
        reader.reject("dispatcher.retry_schedule", reason);
    }
    if let Some(index) = schedule
        .iter()
        .position(|wait| wait.is_zero() || *wait > MAX_RETRY_WAIT)
    {
        let reason = format!("item {}: must lie between \"1ms\" and \"30d\"", index + 1);
        reader.reject("dispatcher.retry_schedule", reason);
    }
}

fn check_oidc(oidc: &Oidc, reader: &mut Reader) {
    let has_query = |url: &Url| url.query().is_some() || url.fragment().is_some();
    match Url::parse(&oidc.issuer) {
        Ok(url) if !is_safe(&url) => {
            let reason = "must begin with https://; http:// is allowed on this machine only";
            reader.reject("gateway.oidc.issuer", reason);
        }
        Ok(url) if has_query(&url) => {
            reader.reject("gateway.oidc.issuer", "must end with its path");
        }
        Ok(_) => {}
        Err(error) => {
            let reason = format!("expected an absolute URL: {error}");
            reader.reject("gateway.oidc.issuer", reason);
        }
    }
    let console = &oidc.console_url;
    if !is_safe(console) {
        let reason = "must begin with https://; http:// is allowed on this machine only";
        reader.reject("gateway.oidc.console_url", reason);
    } else if has_query(console) || !console.path().ends_with("/console/") {
        reader.reject("gateway.oidc.console_url", "must end with /console/");
    }
    if !oidc.scopes.iter().any(|scope| scope == "openid") {
        reader.reject("gateway.oidc.scopes", "must contain `openid`");
    }
    if oidc.grants.is_empty() {
        reader.reject("gateway.oidc.grants", "must name a group");
    }
}

/// Returns true if others on the network cannot read or change what is sent.
fn is_safe(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let is_local = is_localhost(host)
        || literal_address(host).is_some_and(|address| address.to_canonical().is_loopback());
    url.scheme() == "https" || url.scheme() == "http" && is_local
}

/// In the form that browsers send (RFC 6454 6.2): scheme, host and port, and nothing else.
fn is_origin(text: &str) -> bool {
    text == "*"
        || Url::parse(text).is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https") && url.origin().ascii_serialization() == text
        })
}

/// Parses the URL like the driver: several servers, and sockets whose path is encoded or follows as `?host=`.
/// Errors repeat no part of the URL: if it is malformed, any part may be the password.
fn check_database(url: &str) -> Result<(), String> {
    let rest = ["postgres://", "postgresql://"]
        .iter()
        .find_map(|scheme| url.strip_prefix(scheme))
        .ok_or("expected a URL that begins with postgres://")?;
    let (_credentials, rest) = rest.split_once('@').unwrap_or(("", rest));
    let servers = rest.split(['/', '?']).next().unwrap_or_default();
    if servers.is_empty() {
        let named = rest.contains("?host=") || rest.contains("&host=");
        return if named {
            Ok(())
        } else {
            Err(NO_HOST.to_owned())
        };
    }
    servers.split(',').try_for_each(|server| {
        let (host, port) = match server.strip_prefix('[') {
            Some(address) => match address.split_once(']') {
                Some((host, "")) => (host, None),
                Some((host, after)) => (host, Some(after.strip_prefix(':').unwrap_or("none"))),
                None => ("", None),
            },
            None => match server.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (server, None),
            },
        };
        if host.is_empty() {
            return Err(NO_HOST.to_owned());
        }
        match port.map(str::parse::<u16>) {
            None | Some(Ok(1..)) => Ok(()),
            Some(_) => Err(NO_PORT.to_owned()),
        }
    })
}

fn check_bus(url: &str) -> Result<(), String> {
    if !(url.starts_with("amqp://") || url.starts_with("amqps://")) {
        let reason = "expected a URL that begins with amqp:// or amqps://, or `in-process:`";
        return Err(reason.to_owned());
    }
    let url = Url::parse(url).map_err(|error| match error {
        url::ParseError::InvalidPort => NO_PORT.to_owned(),
        url::ParseError::EmptyHost => NO_HOST.to_owned(),
        other => format!("not a URL: {other}"),
    })?;
    if url.host_str().is_none_or(str::is_empty) {
        return Err(NO_HOST.to_owned());
    }
    if url.port() == Some(0) {
        return Err(NO_PORT.to_owned());
    }
    Ok(())
}
