//! Recipients of e-mail: the `url` of such a Connection is `mailto:` and their addresses (RFC 6068).

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{Issue, host_name::is_reserved_name};

/// Maximum number of recipients of a Connection.
pub const MAX_RECIPIENTS: usize = 10;

const SCHEME: &str = "mailto:";
const MAX_ADDRESS_BYTES: usize = 254;
const MAX_LOCAL_BYTES: usize = 64;
const MAX_LABEL_BYTES: usize = 63;
/// Marks that need no quotes in a header and no escape in a URL, and that no old relay reads as a route.
const LOCAL_MARKS: &[u8] = b"_+-='~";

/// One e-mail address, in ASCII. It cannot break out of a header, a URL or an SMTP command. `Debug` does not print it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MailAddress(String);

impl MailAddress {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Identifies the address where it is not named: SHA-256 of it in lower case.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.0.to_ascii_lowercase()).into()
    }

    /// Returns the address as a key without write permission sees it.
    pub fn masked(&self) -> String {
        let domain = self.0.rsplit('@').next().unwrap_or_default();
        format!("***@{domain}")
    }
}

impl FromStr for MailAddress {
    type Err = Issue;

    fn from_str(text: &str) -> Result<Self, Issue> {
        if text.len() > MAX_ADDRESS_BYTES {
            return Err(Issue::TooLong);
        }
        let (local, domain) = text.split_once('@').ok_or(Issue::InvalidFormat)?;
        let is_atom = |atom: &str| {
            let is_part = |b: u8| b.is_ascii_alphanumeric() || LOCAL_MARKS.contains(&b);
            !atom.is_empty() && atom.bytes().all(is_part)
        };
        let is_label = |label: &str| {
            let is_part = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
            (1..=MAX_LABEL_BYTES).contains(&label.len())
                && label.bytes().all(is_part)
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        let ends_in_digits = |domain: &str| {
            let last = domain.rsplit('.').next().unwrap_or_default();
            last.bytes().all(|b| b.is_ascii_digit())
        };
        if local.len() > MAX_LOCAL_BYTES
            || !local.split('.').all(is_atom)
            || !domain.split('.').all(is_label)
            || ends_in_digits(domain)
        {
            return Err(Issue::InvalidFormat);
        }
        let domain = domain.to_ascii_lowercase();
        if is_reserved_name(&domain) {
            return Err(Issue::ForbiddenAddress);
        }
        Ok(Self(format!("{local}@{domain}")))
    }
}

impl fmt::Debug for MailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MailAddress")
    }
}

/// The recipients of a Connection: at least one, and none twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipients(Vec<MailAddress>);

impl Recipients {
    /// Returns true if a URL names recipients, valid or not.
    pub fn are_named_by(url: &str) -> bool {
        url.starts_with(SCHEME)
    }

    pub fn as_slice(&self) -> &[MailAddress] {
        &self.0
    }

    /// Returns the URL as a key without write permission sees it.
    pub fn masked(&self) -> String {
        let masked: Vec<String> = self.0.iter().map(MailAddress::masked).collect();
        format!("{SCHEME}{}", masked.join(","))
    }
}

impl FromStr for Recipients {
    type Err = Issue;

    fn from_str(url: &str) -> Result<Self, Issue> {
        let list = url.strip_prefix(SCHEME).ok_or(Issue::InvalidFormat)?;
        let mut recipients: Vec<MailAddress> = Vec::new();
        for text in list.split(',') {
            if recipients.len() == MAX_RECIPIENTS {
                return Err(Issue::TooMany);
            }
            let address: MailAddress = text.parse()?;
            let digest = address.digest();
            if recipients.iter().any(|other| other.digest() == digest) {
                return Err(Issue::Duplicate);
            }
            recipients.push(address);
        }
        Ok(Self(recipients))
    }
}

impl fmt::Display for Recipients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses: Vec<&str> = self.0.iter().map(MailAddress::as_str).collect();
        write!(f, "{SCHEME}{}", addresses.join(","))
    }
}

/// State of a recipient's consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RecipientState {
    /// The recipient has not confirmed the address yet, and gets nothing but the request to do so.
    Pending,
    Confirmed,
    /// The recipient wants no mail of this Connection.
    Unsubscribed,
    /// The mail server answered that the address does not exist.
    Refused,
}

impl RecipientState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Confirmed => "CONFIRMED",
            Self::Unsubscribed => "UNSUBSCRIBED",
            Self::Refused => "REFUSED",
        }
    }
}

/// A recipient as clients see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipient {
    pub address: String,
    pub state: RecipientState,
}

#[cfg(test)]
mod tests {
    use super::{MAX_RECIPIENTS, MailAddress, Recipients};
    use crate::Issue;

    #[test]
    fn addresses_are_plain_ascii_with_a_public_domain() {
        for (text, stored) in [
            ("ada@example.com", "ada@example.com"),
            (
                "Ada.L+earshot@Mail.Example.COM",
                "Ada.L+earshot@mail.example.com",
            ),
            (
                "o'neil_~=-@xn--bcher-kva.example",
                "o'neil_~=-@xn--bcher-kva.example",
            ),
        ] {
            let address: MailAddress = text.parse().unwrap();
            assert_eq!(address.as_str(), stored);
        }
        let long = format!("{}@example.com", "a".repeat(65));
        for text in [
            "",
            "ada",
            "@example.com",
            "ada@",
            ".ada@example.com",
            "ada.@example.com",
            "a..b@example.com",
            "a b@example.com",
            "\"a b\"@example.com",
            "a@b@example.com",
            "a%b@example.com",
            "a!b@example.com",
            "ada@example..com",
            "ada@-example.com",
            "ada@[192.0.2.1]",
            "ada@192.0.2.1",
            "ada@exämple.com",
            "ada@example.com\r\nBcc: eve@example.com",
            "ada@example.com>",
            long.as_str(),
        ] {
            let found = text.parse::<MailAddress>();
            assert_eq!(found.unwrap_err(), Issue::InvalidFormat, "{text}");
        }
        for text in ["root@localhost", "root@relay.internal"] {
            let found = text.parse::<MailAddress>();
            assert_eq!(found.unwrap_err(), Issue::ForbiddenAddress, "{text}");
        }
        let endless = format!("a@{}com", "example.".repeat(40));
        assert_eq!(endless.parse::<MailAddress>().unwrap_err(), Issue::TooLong);
    }

    #[test]
    fn recipients_are_few_and_different() {
        let url = "mailto:ada@example.com,grace@example.com";
        let recipients: Recipients = url.parse().unwrap();
        assert_eq!(recipients.as_slice().len(), 2);
        assert_eq!(recipients.to_string(), url);
        assert_eq!(
            recipients.masked(),
            "mailto:***@example.com,***@example.com"
        );
        let many: Vec<String> = { 0..=MAX_RECIPIENTS }
            .map(|number| format!("a{number}@example.com"))
            .collect();
        let many = format!("mailto:{}", many.join(","));
        for (url, issue) in [
            ("https://example.com/", Issue::InvalidFormat),
            ("mailto:", Issue::InvalidFormat),
            ("mailto:ada@example.com,", Issue::InvalidFormat),
            (
                "mailto:ada@example.com?cc=eve@example.com",
                Issue::InvalidFormat,
            ),
            ("mailto:ada@example.com,ADA@Example.com", Issue::Duplicate),
            (many.as_str(), Issue::TooMany),
        ] {
            assert_eq!(url.parse::<Recipients>().unwrap_err(), issue, "{url}");
        }
    }

    #[test]
    fn address_is_not_in_debug_output() {
        let recipients: Recipients = "mailto:ada@example.com".parse().unwrap();
        assert!(!format!("{recipients:?}").contains("ada"));
    }
}
