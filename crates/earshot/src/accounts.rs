//! `earshot accounts`: quotas of single accounts.

use std::str::FromStr;

use anyhow::bail;
use clap::{Args, Subcommand};
use domain::audit::{Action, Entry};
use store::{AsyncConnection, AsyncPgConnection, QueryError, audit, quotas};

use crate::{database, keys};

/// Largest quotas; the bounds of the defaults in the configuration too.
const MOST: u32 = 1_000_000;
const MOST_NAMESPACES: u32 = 10_000;
const MOST_BYTES: u32 = 2_000_000_000;
const MOST_SCANS: u32 = 1_000_000_000;
const MOST_POINTS: u32 = 1_000_000_000;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List accounts and the quotas that were set for them.
    List {
        #[command(flatten)]
        database: database::Arguments,
    },
    /// Set quotas of an account. They hold at once; what the account has already stays.
    SetQuota(SetQuota),
}

#[derive(Debug, Args)]
pub(crate) struct SetQuota {
    /// The account's name.
    #[arg(value_parser = keys::parse::ACCOUNT)]
    account: String,
    #[command(flatten)]
    quotas: Quotas,
    #[command(flatten)]
    database: database::Arguments,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Quotas {
    /// How many Namespaces: 0 to 10000, or `default`.
    #[arg(long, value_name = "LIMIT")]
    namespaces: Option<Limit<MOST_NAMESPACES>>,
    /// How many Managers: 0 to 1000000, or `default`.
    #[arg(long, value_name = "LIMIT")]
    managers: Option<Limit>,
    /// How many Connections: 0 to 1000000, or `default`.
    #[arg(long, value_name = "LIMIT")]
    connections: Option<Limit>,
    /// How many distinct feeds: 0 to 1000000, or `default`.
    #[arg(long, value_name = "LIMIT")]
    feeds: Option<Limit>,
    /// How many bytes of instructions and mutes: 0 to 2000000000, or `default`.
    #[arg(long, value_name = "LIMIT")]
    content_bytes: Option<Limit<MOST_BYTES>>,
    /// How many Scans a day: 0 to 1000000000, or `default`.
    #[arg(long, value_name = "LIMIT")]
    scans_per_day: Option<Limit<MOST_SCANS>>,
    /// How many request points a minute for all keys together: 1 to 1000000000, or `default`. It holds within
    /// seconds.
    #[arg(long, value_name = "LIMIT")]
    rate_limit_per_minute: Option<Limit<MOST_POINTS, 1>>,
}

/// `None` for the default of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limit<const MAX: u32 = MOST, const MIN: u32 = 0>(Option<u32>);

impl<const MAX: u32, const MIN: u32> FromStr for Limit<MAX, MIN> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "default" {
            return Ok(Self(None));
        }
        let limit = text
            .parse()
            .ok()
            .filter(|limit| (MIN..=MAX).contains(limit));
        let limit = limit
            .ok_or_else(|| format!("a quota is a number from {MIN} to {MAX}, or `default`"))?;
        Ok(Self(Some(limit)))
    }
}

impl Quotas {
    fn change(&self) -> quotas::Change {
        let limit = |given: Option<Limit>| given.map(|Limit(limit)| limit);
        quotas::Change {
            namespaces: self.namespaces.map(|Limit(limit)| limit),
            managers: limit(self.managers),
            connections: limit(self.connections),
            feeds: limit(self.feeds),
            content_bytes: self.content_bytes.map(|Limit(limit)| limit),
            scans_per_day: self.scans_per_day.map(|Limit(limit)| limit),
            rate_limit_per_minute: self.rate_limit_per_minute.map(|Limit(limit)| limit),
        }
    }

    /// Names of the quotas that are given, as in `GET /v1/caller`.
    fn fields(&self) -> Vec<String> {
        let fields = [
            ("namespaces", self.namespaces.is_some()),
            ("managers", self.managers.is_some()),
            ("connections", self.connections.is_some()),
            ("feeds", self.feeds.is_some()),
            ("contentBytes", self.content_bytes.is_some()),
            ("scansPerDay", self.scans_per_day.is_some()),
            (
                "accountRateLimitPerMinute",
                self.rate_limit_per_minute.is_some(),
            ),
        ];
        let given = fields.into_iter().filter(|(_, is_given)| *is_given);
        given.map(|(name, _)| name.to_owned()).collect()
    }
}

pub(crate) fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::List { database } => keys::with(database, async |conn| list(conn).await),
        Command::SetQuota(arguments) => keys::with(&arguments.database, async |conn| {
            set_quota(conn, arguments).await
        }),
    }
}

async fn list(conn: &mut AsyncPgConnection) -> anyhow::Result<()> {
    println!(
        "ACCOUNT\tMANAGERS\tCONNECTIONS\tFEEDS\tSCANS_PER_DAY\tRATE_LIMIT_PER_MINUTE\tNAMESPACES\tCONTENT_BYTES"
    );
    let word = |limit: Option<u32>| limit.map_or_else(|| "default".to_owned(), |n| n.to_string());
    for (name, set) in quotas::list(conn).await? {
        println!(
            "{name}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
            word(set.managers),
            word(set.connections),
            word(set.feeds),
            word(set.scans_per_day),
            word(set.rate_limit_per_minute),
            word(set.namespaces),
            word(set.content_bytes)
        );
    }
    Ok(())
}

async fn set_quota(conn: &mut AsyncPgConnection, arguments: &SetQuota) -> anyhow::Result<()> {
    let account = &arguments.account;
    let change = arguments.quotas.change();
    let entry = Entry {
        fields: arguments.quotas.fields(),
        ..Entry::of_account(Action::Update, "quotas")
    };
    let found = conn
        .transaction::<_, QueryError, _>(async |conn| {
            let Some(id) = quotas::set(conn, account, &change).await? else {
                return Ok(false);
            };
            audit::record_of_operator(conn, id, &entry).await?;
            Ok(true)
        })
        .await?;
    if !found {
        bail!("there is no account `{account}`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use store::quotas::Change;

    use super::Command;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        command: Command,
    }

    /// The change that the arguments ask for, or the exit code.
    fn parse(arguments: &[&str]) -> Result<Change, i32> {
        let line = ["accounts", "set-quota", "acme"].iter().chain(arguments);
        match Line::try_parse_from(line) {
            Ok(Line {
                command: Command::SetQuota(given),
            }) => Ok(given.quotas.change()),
            Ok(_) => panic!("another command"),
            Err(error) => Err(error.exit_code()),
        }
    }

    #[test]
    fn set_quota_accepts_numbers_and_default() {
        let change = Change {
            namespaces: Some(Some(10_000)),
            managers: Some(Some(500)),
            connections: Some(None),
            feeds: None,
            content_bytes: Some(Some(2_000_000_000)),
            scans_per_day: Some(Some(2_000_000)),
            rate_limit_per_minute: Some(Some(30)),
        };
        let given = [
            "--namespaces=10000",
            "--content-bytes=2000000000",
            "--managers",
            "500",
            "--connections",
            "default",
            "--scans-per-day",
            "2000000",
            "--rate-limit-per-minute=30",
        ];
        assert_eq!(parse(&given), Ok(change));
    }

    #[test]
    fn set_quota_refuses_invalid_values() {
        assert_eq!(parse(&[]), Err(2), "no quota given");
        for wrong in ["-1", "1000001", "many", "", "1.5"] {
            assert_eq!(parse(&[&format!("--managers={wrong}")]), Err(2), "{wrong}");
        }
        assert_eq!(parse(&["--namespaces=10001"]), Err(2));
        assert_eq!(parse(&["--rate-limit-per-minute=0"]), Err(2));
    }
}
