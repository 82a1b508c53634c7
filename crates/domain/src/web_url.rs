//! URLs from customers: the pages to start from, and the endpoints to deliver to.
//!
//! Parsing refuses everything that the text alone shows: form, scheme, credentials, ports and literal addresses
//! that the policy does not permit, names that are never public unless the policy permits them. The addresses of a name are known only after
//! DNS, so `outbound` checks them at every connection.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use url::{Host, Url};

use crate::{Issue, address::AddressPolicy, host_name::is_localhost};

pub const MAX_BYTES: usize = 2_048;
/// The longest name of a host (RFC 1035, 2.3.4), and a port.
const MAX_AUTHORITY_CHARS: usize = 260;

/// Purpose of the URL, which decides whether `http://` is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A page to read. Its owner chooses the scheme.
    Seed,
    /// An endpoint that gets customers' data, so https unless the operator allows http.
    Connection,
}

/// A URL that the policy permits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebUrl {
    text: String,
    url: Url,
}

impl WebUrl {
    /// # Errors
    /// `TooLong`, `InvalidFormat`, `ForbiddenAddress`, or `Forbidden` for http if https is required.
    pub fn parse(text: &str, policy: &AddressPolicy, kind: Kind) -> Result<Self, Issue> {
        if text.len() > MAX_BYTES {
            return Err(Issue::TooLong);
        }
        check_form(text)?;
        if has_long_host(text) {
            return Err(Issue::InvalidFormat);
        }
        // The cause adds nothing to the issue.
        let url = Url::parse(text).ok().ok_or(Issue::InvalidFormat)?;
        check(&url, policy, kind)?;
        Ok(Self {
            text: text.to_owned(),
            url,
        })
    }

    /// The URL as the customer wrote it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The normalised URL, for requests.
    pub fn url(&self) -> &Url {
        &self.url
    }
}

impl fmt::Display for WebUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Checks a parsed URL, for example a redirect's target.
///
/// # Errors
/// Same as [`WebUrl::parse`], except `TooLong`.
pub fn check(url: &Url, policy: &AddressPolicy, kind: Kind) -> Result<(), Issue> {
    let is_http = match url.scheme() {
        "http" => true,
        "https" => false,
        _ => return Err(Issue::InvalidFormat),
    };
    if !url.username().is_empty() || url.password().is_some() || url.port() == Some(0) {
        return Err(Issue::InvalidFormat);
    }
    let permitted = match url.host().ok_or(Issue::InvalidFormat)? {
        // `Url` has converted 0x7f.1, 2130706433, 017700000001 and similar forms to this one.
        Host::Ipv4(ip) => policy.permits(ip.into()),
        Host::Ipv6(ip) => policy.permits(ip.into()),
        Host::Domain(name) if is_localhost(name) => !policy.permitted_loopback().is_empty(),
        Host::Domain(name) => policy.permits_name(name),
    };
    let permits_port = url
        .port_or_known_default()
        .is_some_and(|port| policy.permits_port(port));
    if !permitted || !permits_port {
        return Err(Issue::ForbiddenAddress);
    }
    if is_http && kind == Kind::Connection && !policy.allow_http {
        return Err(Issue::Forbidden);
    }
    Ok(())
}

/// The URL for logs, errors and other people: without user information and fragment, and with `***` for its
/// query, because these may contain secrets.
pub fn masked(url: &Url) -> String {
    let mut masked = url.clone();
    // A URL with a host accepts both.
    let _ = (masked.set_username(""), masked.set_password(None));
    masked.set_fragment(None);
    if url.query().is_some() {
        masked.set_query(Some("***"));
    }
    masked.into()
}

/// True if an absolute or relative reference names a longer host than DNS has. Encoding it would take time in
/// proportion to the square of its length, so ask before it is parsed or joined.
pub fn has_long_host(reference: &str) -> bool {
    if reference.len() <= MAX_AUTHORITY_CHARS {
        return false;
    }
    // `Url` ignores these (URL Standard, 4.4).
    let kept = reference
        .chars()
        .filter(|c| !matches!(c, '\t' | '\n' | '\r'));
    let kept: String = kept.collect();
    let kept = kept.trim_start_matches(|c: char| c <= ' ');
    let is_slash = |c: char| matches!(c, '/' | '\\');
    let after_scheme = { kept.split_once(':') }.filter(|(scheme, _)| is_web(scheme));
    let rest = match after_scheme {
        Some((_, rest)) => rest,
        None if kept.starts_with(is_slash) && kept[1..].starts_with(is_slash) => kept,
        None => return false,
    };
    let rest = rest.trim_start_matches(is_slash);
    let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    authority.chars().nth(MAX_AUTHORITY_CHARS).is_some()
}

fn is_web(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// The literal address in the host of a URL, if any.
pub fn literal_address(host: &str) -> Option<IpAddr> {
    match host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        Some(v6) => v6.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => host.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
    }
}

/// Refuses text that `Url` would silently repair, so that the customer sees the URL that is requested:
/// surrounding spaces, line breaks inside, backslashes, missing slashes, empty credentials.
fn check_form(text: &str) -> Result<(), Issue> {
    let (scheme, rest) = text.split_once("://").ok_or(Issue::InvalidFormat)?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_mendable = text
        .chars()
        .any(|c| c.is_control() || c.is_whitespace() || c == '\\');
    if !is_web(scheme) || authority.is_empty() || authority.contains('@') || is_mendable {
        return Err(Issue::InvalidFormat);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Kind, MAX_BYTES, WebUrl, has_long_host, literal_address, masked};
    use crate::{Issue, address::AddressPolicy};

    fn seed(text: &str) -> Result<WebUrl, Issue> {
        WebUrl::parse(text, &AddressPolicy::default(), Kind::Seed)
    }

    #[test]
    fn public_addresses_are_accepted_unchanged() {
        for text in [
            "https://acme.com",
            "http://acme.com:8080/a?b=c#d",
            "HTTPS://ACME.com/Ü",
            "https://bücher.example/",
            "https://acme.com./x",
            "https://8.8.8.8/",
            "https://[2606:4700:4700::1111]/dns",
            "https://localhost.acme.com/",
            "https://internal.acme.com/",
            "https://hooks.test/a",
        ] {
            assert_eq!(seed(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn host_is_at_most_as_long_as_in_dns() {
        let host = |length: usize| "ü.".repeat(length / 2) + &"a".repeat(length % 2);
        let longest = format!("https://{}/", ["a"; 127].join("."));
        assert!(seed(&longest).is_ok());
        let port = format!("https://{}:65535/", host(254));
        assert!(!has_long_host(&port));
        for long in [
            format!("https://{}", host(261)),
            format!("HTTP:/{}?a", host(261)),
            format!(" \u{1}ht\ttps:\\{}\\b", host(261)),
            format!("//{}#a", host(261)),
            format!("\\\n/{}/a", host(261)),
        ] {
            assert!(has_long_host(&long), "{long}");
            assert_eq!(seed(&long), Err(Issue::InvalidFormat));
        }
        let path = host(300);
        for short in [
            format!("https://acme.com/{path}"),
            format!("//acme.com?{path}"),
            format!("/{path}"),
            path.clone(),
            format!("?a=//{path}"),
            format!("mailto:{path}"),
        ] {
            assert!(!has_long_host(&short), "{short}");
        }
    }

    #[test]
    fn malformed_urls_are_refused() {
        for text in [
            "",
            "acme.com",
            "//acme.com",
            "ftp://acme.com",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "gopher://acme.com/",
            "https://",
            "https:///path",
            "https:acme.com",
            "https:\\\\acme.com",
            "https://acme.com\\@evil.com",
            " https://acme.com",
            "https://acme.com\n",
            "https://ac\tme.com",
            "https://acme.com/a b",
            "https://user@acme.com",
            "https://user:secret@acme.com",
            "https://:@acme.com",
            "https://@acme.com",
            "https://acme.com:0/",
            "https://acme.com:99999/",
            "https://a..b%00.com/",
            "https://[::1%25eth0]/",
            "https://1.2.3.4.5/",
        ] {
            assert_eq!(seed(text), Err(Issue::InvalidFormat), "{text}");
        }
    }

    #[test]
    fn literal_addresses_are_checked_in_every_spelling() {
        for text in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://0x7f.1/",
            "http://0x7f000001/",
            "http://2130706433/",
            "http://017700000001/",
            "http://0177.0.0.1/",
            "http://127.0.0.1./",
            "http://１２７.0.0.1/",
            "http://0/",
            "http://10.0.0.1/",
            "http://169.254.169.254/latest/meta-data",
            "http://2852039166/",
            "http://[::1]/",
            "http://[::]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[::ffff:a9fe:a9fe]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[fd00:ec2::254]/",
            "http://[fe80::1]/",
        ] {
            assert_eq!(seed(text), Err(Issue::ForbiddenAddress), "{text}");
        }
    }

    #[test]
    fn names_that_are_never_public_are_refused() {
        for text in [
            "http://localhost/",
            "http://LOCALHOST:9000/",
            "http://localhost./",
            "http://a.localhost/",
            "http://printer.local/",
            "http://metadata.google.internal/",
            "http://router.home.arpa/",
            "http://nas.lan/",
            "http://wiki.corp/",
            "http://postgres.default.svc/",
            "http://kubernetes.default.svc.cluster.local/",
            "http://nothing.invalid/",
            "http://abc.onion/",
            "http://intranet/",
            "http://intranet./",
            "http://postgres:5432/",
            "http://acme.com:25/",
            "https://acme.com:6667/",
            "https://8.8.8.8:22/",
        ] {
            assert_eq!(seed(text), Err(Issue::ForbiddenAddress), "{text}");
        }
    }

    #[test]
    fn localhost_counts_as_loopback() {
        let dev = AddressPolicy {
            allow_cidrs: vec!["127.0.0.0/8".parse().unwrap()],
            allow_http: true,
            ..AddressPolicy::default()
        };
        for text in ["http://localhost:9000/hook", "http://127.0.0.1:9000/hook"] {
            assert!(
                WebUrl::parse(text, &dev, Kind::Connection).is_ok(),
                "{text}"
            );
        }
        assert_eq!(
            WebUrl::parse("http://[::1]:9000/", &dev, Kind::Connection),
            Err(Issue::ForbiddenAddress)
        );
    }

    #[test]
    fn internal_names_are_accepted_once_a_private_network_is_allowed() {
        let policy = |cidrs: &[&str], hosts: &[&str]| AddressPolicy {
            allow_cidrs: cidrs.iter().map(|cidr| cidr.parse().unwrap()).collect(),
            allow_hosts: hosts.iter().map(|host| host.parse().unwrap()).collect(),
            allow_http: true,
            ..AddressPolicy::default()
        };
        let receiver = "http://receiver:8000/";
        let n8n = "http://n8n.automation.svc.cluster.local:5678/webhook/x";
        let intranet = "https://wiki.corp/";
        for (policy, accepted) in [
            (policy(&[], &[]), [false, false, false]),
            // `localhost` names it; no network is opened.
            (policy(&["127.0.0.0/8", "::1/128"], &[]), [false; 3]),
            (policy(&["172.16.0.0/12"], &[]), [true; 3]),
            (policy(&["0.0.0.0/0"], &[]), [true; 3]),
            (
                policy(&["172.16.0.0/12"], &["receiver", "*.svc.cluster.local"]),
                [true, true, false],
            ),
            (policy(&[], &["corp"]), [false, false, true]),
        ] {
            for (url, accepted) in [receiver, n8n, intranet].into_iter().zip(accepted) {
                let parsed = WebUrl::parse(url, &policy, Kind::Connection);
                assert_eq!(parsed.is_ok(), accepted, "{url}, {policy:?}");
            }
        }
    }

    #[test]
    fn connections_require_https_unless_the_operator_allows_http() {
        let strict = AddressPolicy::default();
        let parse = |text, policy: &AddressPolicy| WebUrl::parse(text, policy, Kind::Connection);
        assert_eq!(parse("http://acme.com/", &strict), Err(Issue::Forbidden));
        assert!(parse("https://acme.com/", &strict).is_ok());
        let lax = AddressPolicy {
            allow_http: true,
            ..strict
        };
        assert!(parse("http://acme.com/", &lax).is_ok());
    }

    #[test]
    fn masked_url_shows_neither_query_nor_user_information() {
        for (url, shown) in [
            (
                "https://blog.example/feed.xml",
                "https://blog.example/feed.xml",
            ),
            (
                "https://blog.example/feed?token=canary",
                "https://blog.example/feed?***",
            ),
            (
                "https://canary:canary@blog.example:8443/",
                "https://blog.example:8443/",
            ),
            (
                "https://canary@blog.example/?canary#canary",
                "https://blog.example/?***",
            ),
            (
                "mailto:a@blog.example?subject=canary",
                "mailto:a@blog.example?***",
            ),
        ] {
            assert_eq!(masked(&url.parse().unwrap()), shown, "{url}");
        }
    }

    #[test]
    fn url_length_is_limited_in_bytes() {
        let base = "https://acme.com/";
        let fits = format!("{base}{}", "a".repeat(MAX_BYTES - base.len()));
        assert!(seed(&fits).is_ok());
        assert_eq!(seed(&format!("{fits}a")), Err(Issue::TooLong));
    }

    #[test]
    fn host_that_spells_an_address_is_distinguished_from_a_name() {
        assert_eq!(literal_address("[::1]"), Some("::1".parse().unwrap()));
        assert_eq!(
            literal_address("10.0.0.1"),
            Some("10.0.0.1".parse().unwrap())
        );
        assert_eq!(literal_address("acme.com"), None);
        assert_eq!(literal_address("::1"), None);
    }
}
