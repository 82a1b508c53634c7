//! The operator's way out of the network: a proxy, and authorities that are trusted in addition.

use std::{fmt, net::IpAddr, str::FromStr};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ipnet::IpNet;
use url::{Host, Url};

use crate::{
    host_name::{self, HostName},
    web_url,
};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Egress {
    /// `None` if servers are contacted directly.
    pub proxy: Option<Proxy>,
    /// Certificates (DER) of authorities that are trusted in addition to the public ones.
    pub authorities: Vec<Vec<u8>>,
}

/// A proxy that forwards `http://` requests and opens tunnels (CONNECT) for `https://`.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Scheme, host and port, without credentials.
    url: Url,
    authorization: Option<String>,
    exceptions: Vec<Exception>,
}

/// A host that is contacted without the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exception {
    /// With its subdomains.
    Name(HostName),
    /// Addresses that stand in a URL. The addresses of names do not count.
    Network(IpNet),
}

impl Proxy {
    /// # Errors
    /// What is wrong with `url`. The text repeats nothing of it, because it may contain a password.
    pub fn parse(url: &str, exceptions: Vec<Exception>) -> Result<Self, &'static str> {
        const FORM: &str =
            "expected the URL of a proxy, such as http://user:password@proxy.example:3128";
        let mut url = Url::parse(url.trim()).map_err(|_not_repeated| FORM)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("expected a URL that begins with http:// or https://");
        }
        let is_bare = matches!(url.path(), "" | "/");
        if !is_bare || url.query().is_some() || url.fragment().is_some() || url.port() == Some(0) {
            return Err(FORM);
        }
        let has_credentials = !url.username().is_empty() || url.password().is_some();
        let authorization = has_credentials.then(|| {
            let decoded = |part: &str| percent_decode(part.as_bytes());
            let mut pair = decoded(url.username());
            pair.push(b':');
            pair.extend(decoded(url.password().unwrap_or_default()));
            format!("Basic {}", STANDARD.encode(pair))
        });
        // A URL with a host accepts both.
        let _ = (url.set_username(""), url.set_password(None));
        Ok(Self {
            url,
            authorization,
            exceptions,
        })
    }

    /// The proxy's URL without credentials.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The value of `Proxy-Authorization`. A secret.
    pub fn authorization(&self) -> Option<&str> {
        self.authorization.as_deref()
    }

    /// Returns true if requests to `host`, as in a URL, go through the proxy. Those to this machine never do.
    pub fn is_used_for(&self, host: &str) -> bool {
        let address = web_url::literal_address(host).map(|address| address.to_canonical());
        let is_local = match address {
            Some(address) => address.is_loopback(),
            None => host_name::is_localhost(host),
        };
        !is_local
            && !self
                .exceptions
                .iter()
                .any(|exception| exception.covers(host, address))
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("url", &self.url.as_str())
            .field("exceptions", &self.exceptions)
            .finish_non_exhaustive()
    }
}

impl Exception {
    fn covers(&self, host: &str, address: Option<IpAddr>) -> bool {
        match (self, address) {
            (Self::Name(name), None) => name.covers(host),
            (Self::Network(network), Some(address)) => network.contains(&address),
            _ => false,
        }
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Network(network) => network.fmt(f),
        }
    }
}

impl FromStr for Exception {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Network(address.into()));
        }
        if let Ok(network) = text.parse() {
            return Ok(Self::Network(network));
        }
        // `300.1.1.1` is no name.
        match Host::parse(text.trim_start_matches(['*', '.'])) {
            Ok(Host::Domain(_)) => text.parse().map(Self::Name),
            _ => Err(()),
        }
    }
}

fn percent_decode(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let hex = match after {
            [high, low, ..] if *first == b'%' => digit(*high).zip(digit(*low)),
            _ => None,
        };
        match hex {
            Some((high, low)) => {
                decoded.push(high << 4 | low);
                rest = &after[2..];
            }
            None => {
                decoded.push(*first);
                rest = after;
            }
        }
    }
    decoded
}

fn digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests {
    use super::{Exception, Proxy};

    fn proxy(exceptions: &[&str]) -> Proxy {
        let exceptions = exceptions.iter().map(|text| text.parse().unwrap());
        Proxy::parse("http://proxy.example:3128", exceptions.collect()).unwrap()
    }

    #[test]
    fn credentials_are_decoded_and_shown_nowhere() {
        for (url, basic) in [
            ("http://proxy.example:3128", None),
            ("https://me@proxy.example/", Some("Basic bWU6")),
            // me:a@b%
            (
                "http://me:a%40b%25@proxy.example:3128\n",
                Some("Basic bWU6YUBiJQ=="),
            ),
        ] {
            let proxy = Proxy::parse(url, Vec::new()).unwrap();
            assert_eq!(proxy.authorization(), basic, "{url}");
            assert_eq!(proxy.url().username(), "");
            let shown = format!("{proxy:?}");
            assert!(!shown.contains("Basic") && !shown.contains("me"), "{shown}");
        }
    }

    #[test]
    fn what_is_no_http_proxy_is_refused() {
        for url in [
            "",
            "proxy:3128",
            "socks5://proxy:1080",
            "http://",
            "http://proxy/path",
            "http://proxy?query",
            "http://proxy:0",
        ] {
            assert!(Proxy::parse(url, Vec::new()).is_err(), "{url}");
        }
    }

    #[test]
    fn exceptions_and_this_machine_are_contacted_directly() {
        let proxy = proxy(&["corp.internal", ".svc", "*.lan", "10.0.0.0/8", "fd00::1"]);
        for direct in [
            "corp.internal",
            "n8n.corp.internal",
            "n8n.corp.internal.",
            "n8n.automation.svc",
            "nas.lan",
            "10.1.2.3",
            "[fd00::1]",
            "localhost",
            "a.localhost",
            "127.0.0.1",
            "[::1]",
            "[::ffff:10.1.2.3]",
        ] {
            assert!(!proxy.is_used_for(direct), "{direct}");
        }
        for proxied in ["acme.com", "notcorp.internal", "11.1.2.3", "[fd00::2]"] {
            assert!(proxy.is_used_for(proxied), "{proxied}");
        }
        for refused in ["", "*", "http://a", "300.1.1.1", "10.0.0.0/33"] {
            assert_eq!(refused.parse::<Exception>(), Err(()), "{refused}");
        }
    }
}
