//! Arguments of `earshot keys`, validated before anything is opened.
//!
//! A refused value is not repeated: it may be a secret, or contain control characters.

use std::{ffi::OsStr, net::IpAddr, time::Duration};

use clap::{Arg, Command, Error, builder::TypedValueParser, error::ErrorKind};
use domain::{Id, key::ApiKey};
use ipnet::{IpNet, Ipv4Net};

/// The same limit as in the constraint `accounts_name_check`.
const MAX_ACCOUNT_BYTES: usize = 63;
const SHORTEST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(3_650 * 86_400);
const LONGEST_GRACE: Duration = Duration::from_secs(90 * 86_400);

pub(crate) const ACCOUNT: Rule<String> = Rule {
    read: account,
    words: "a name has 1 to 63 lower-case letters, digits, `.`, `_` and `-`, and begins with a letter or digit",
};

pub(super) const EXPIRY: Rule<Duration> = Rule {
    read: expiry,
    words: "a time is a number and a unit, such as `30d`, from `1m` to `3650d`",
};

pub(super) const GRACE: Rule<Duration> = Rule {
    read: grace,
    words: "a time is a number and a unit, such as `24h`, from `0s` to `90d`",
};

pub(super) const NETWORK: Rule<IpNet> = Rule {
    read: network,
    words: "a network is an address, or one with the length of its prefix, such as `198.51.100.0/24`",
};

pub(crate) const KEY: Rule<Id> = Rule {
    read: key,
    words: "an id is the 26 characters after `esk_`; the whole key is accepted too",
};

/// Parser of an argument, with the message for an invalid value.
#[derive(Debug, Clone)]
pub(crate) struct Rule<T> {
    read: fn(&str) -> Option<T>,
    words: &'static str,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Rule<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, Error> {
        value.to_str().and_then(self.read).ok_or_else(|| {
            let argument = argument.map(ToString::to_string).unwrap_or_default();
            let message = format!("invalid value for '{argument}': {}\n", self.words);
            Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }
}

fn account(text: &str) -> Option<String> {
    let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let good = text.len() <= MAX_ACCOUNT_BYTES
        && text.bytes().next().is_some_and(alphanumeric)
        && text.bytes().all(|b| alphanumeric(b) || b"._-".contains(&b));
    good.then(|| text.to_owned())
}

fn expiry(text: &str) -> Option<Duration> {
    humantime::parse_duration(text)
        .ok()
        .filter(|time| (SHORTEST..=LONGEST).contains(time))
}

fn grace(text: &str) -> Option<Duration> {
    humantime::parse_duration(text)
        .ok()
        .filter(|time| *time <= LONGEST_GRACE)
}

fn network(text: &str) -> Option<IpNet> {
    let network = match text.parse::<IpNet>() {
        Ok(network) => network.trunc(),
        Err(_) => text.parse::<IpAddr>().ok()?.into(),
    };
    let IpNet::V6(v6) = network else {
        return Some(network);
    };
    // The gateway compares the IPv4 address of a client that has both forms.
    match (v6.addr().to_ipv4_mapped(), v6.prefix_len().checked_sub(96)) {
        (Some(address), Some(length)) => Ipv4Net::new(address, length).ok().map(IpNet::V4),
        _ => Some(network),
    }
}

fn key(text: &str) -> Option<Id> {
    match text.parse::<ApiKey>() {
        Ok(key) => Some(key.id),
        Err(_) => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};
    use domain::{Id, key::ApiKey};

    use super::{ACCOUNT, EXPIRY, GRACE, KEY, NETWORK, Rule, network};

    /// Returns the message for an invalid `value`, and the exit code; `None` if it is valid.
    fn refusal<T: Clone + Send + Sync + 'static>(
        rule: &Rule<T>,
        value: &str,
    ) -> Option<(String, i32)> {
        let argument = Arg::new("x").long("x").value_parser(rule.clone());
        let command = Command::new("test").arg(argument);
        let refused = command.try_get_matches_from(["test", &format!("--x={value}")]);
        refused
            .err()
            .map(|error| (error.to_string(), error.exit_code()))
    }

    #[test]
    fn account_names_follow_the_rule_of_the_database() {
        for good in ["a", "acme", "0-a_b.c", &"a".repeat(63)] {
            assert_eq!(refusal(&ACCOUNT, good), None, "{good}");
        }
        for wrong in [
            "",
            "Acme",
            "-acme",
            ".a",
            "a b",
            "a\n",
            "\u{1b}[31m",
            "é",
            &"a".repeat(64),
        ] {
            let (said, code) = refusal(&ACCOUNT, wrong).unwrap();
            assert_eq!(code, 2);
            assert!(said.contains("1 to 63 lower-case letters"), "{said}");
            assert!(!said.contains('\u{1b}'), "{said:?}");
        }
    }

    #[test]
    fn keys_expire_within_a_minute_and_ten_years() {
        for good in ["1m", "30d", "3650d"] {
            assert_eq!(refusal(&EXPIRY, good), None, "{good}");
        }
        for wrong in ["", "0d", "59s", "3651d", "99999999999999y", "soon", "30"] {
            assert_eq!(refusal(&EXPIRY, wrong).unwrap().1, 2, "{wrong}");
        }
    }

    #[test]
    fn both_keys_work_for_ninety_days_at_most() {
        for good in ["0s", "24h", "90d"] {
            assert_eq!(refusal(&GRACE, good), None, "{good}");
        }
        for wrong in ["", "91d", "-1h", "soon"] {
            assert_eq!(refusal(&GRACE, wrong).unwrap().1, 2, "{wrong}");
        }
    }

    #[test]
    fn network_is_an_address_with_or_without_a_prefix() {
        for (text, stored) in [
            ("198.51.100.0/24", "198.51.100.0/24"),
            ("198.51.100.7/24", "198.51.100.0/24"),
            ("198.51.100.7", "198.51.100.7/32"),
            ("2001:db8::1", "2001:db8::1/128"),
            ("::/0", "::/0"),
            ("::ffff:198.51.100.7", "198.51.100.7/32"),
            ("::ffff:198.51.100.7/120", "198.51.100.0/24"),
            ("::ffff:198.51.100.7/96", "0.0.0.0/0"),
        ] {
            assert_eq!(network(text).unwrap().to_string(), stored);
        }
        for wrong in ["", "198.51.100.0/33", "198.51.100", "office", "::/129"] {
            assert_eq!(refusal(&NETWORK, wrong).unwrap().1, 2, "{wrong}");
        }
    }

    #[test]
    fn a_malformed_id_is_not_repeated() {
        let key = ApiKey::generate();
        for good in [key.expose(), key.id.to_string(), Id::generate().to_string()] {
            assert_eq!(refusal(&KEY, &good), None);
        }
        let damaged = format!("{}!", key.expose());
        let (said, code) = refusal(&KEY, &damaged).unwrap();
        assert_eq!(code, 2);
        assert!(
            !said.contains("esk_0") && !said.contains(&damaged),
            "{said}"
        );
    }
}
