//! Names of hosts: those in the operator's settings, and those that are never public.

use std::{fmt, str::FromStr};

/// A host name and all its subdomains. Lower case, without a final dot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName(String);

impl HostName {
    /// Returns true if `name` is this name or a subdomain of it.
    pub fn covers(&self, name: &str) -> bool {
        is_under(name, &self.0)
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Accepts also the forms `.corp.internal` and `*.corp.internal`, which other programs use.
impl FromStr for HostName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let bare = text.strip_prefix('*').unwrap_or(text);
        let bare = bare.strip_prefix('.').unwrap_or(bare);
        let bare = bare.strip_suffix('.').unwrap_or(bare);
        let is_label = |label: &str| {
            let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
            (1..=63).contains(&label.len()) && label.bytes().all(is_part)
        };
        if bare.len() > 253 || !bare.split('.').all(is_label) {
            return Err(());
        }
        Ok(Self(bare.to_ascii_lowercase()))
    }
}

/// Returns true for `localhost` and its subdomains, which resolve to loopback without DNS (RFC 6761 6.3).
pub fn is_localhost(name: &str) -> bool {
    is_under(name, "localhost")
}

/// Names that are never a public site. If a private network resolves them, they are internal.
///
/// `.test` and `.example` are left to DNS: people use them for public names in experiments.
const RESERVED_SUFFIXES: &[&str] = &[
    "local",     // RFC 6762; `svc.cluster.local` too
    "internal",  // ICANN 2024; `metadata.google.internal`
    "home.arpa", // RFC 8375
    "invalid",   // RFC 6761
    "onion",     // RFC 7686
    "alt",       // RFC 9476
    "localdomain",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "mail", // RFC 6762 appendix G, ICANN
    "svc",  // Kubernetes, with its search list
    "consul",
    "docker",
];

pub fn is_reserved_name(name: &str) -> bool {
    let bare = name.strip_suffix('.').unwrap_or(name);
    !bare.contains('.')
        || RESERVED_SUFFIXES
            .iter()
            .any(|suffix| is_under(bare, suffix))
}

/// Returns true if `name` is `suffix` or a subdomain of it. Hosts of web URLs are already lower case.
fn is_under(name: &str, suffix: &str) -> bool {
    let bare = name.strip_suffix('.').unwrap_or(name);
    bare.strip_suffix(suffix)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::HostName;

    #[test]
    fn host_name_covers_itself_and_its_subdomains() {
        for written in [
            "corp.internal",
            ".corp.internal",
            "*.Corp.Internal",
            "corp.internal.",
        ] {
            let host: HostName = written.parse().unwrap();
            assert_eq!(host.to_string(), "corp.internal");
            assert!(host.covers("corp.internal") && host.covers("n8n.corp.internal."));
            assert!(!host.covers("evilcorp.internal") && !host.covers("internal"));
        }
    }

    #[test]
    fn what_is_no_host_name_is_refused() {
        let long = "a.".repeat(127) + "aa";
        for text in [
            "",
            "*",
            ".",
            "a..b",
            "http://a",
            "a:80",
            "a/b",
            "n8n *",
            "10.0.0.0/8",
            &long,
        ] {
            assert_eq!(text.parse::<HostName>(), Err(()), "{text}");
        }
    }
}
