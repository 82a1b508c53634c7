//! `earshot keys`: the only place where API keys are created.

pub(crate) mod parse;

use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use domain::{
    Id, NamespaceName, Timestamp,
    audit::{Action, Entry},
    key::{ApiKey, Role},
};
use ipnet::IpNet;
use store::{
    AsyncConnection, AsyncPgConnection, QueryResult, audit,
    keys::{self, NewKey},
    namespaces,
};

use crate::{block_on, database};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a key and print it. It is shown only once: only its hash is stored.
    Create(Create),
    /// Create a key like another one, and let the other expire later; both work until then.
    Rotate(Rotate),
    /// List keys, without their secrets.
    List {
        #[command(flatten)]
        database: database::Arguments,
    },
    /// Revoke a key permanently; it stops working within five seconds.
    Revoke {
        /// The id: the 26 characters after `esk_`. The whole key is accepted too.
        #[arg(value_parser = parse::KEY)]
        id: Id,
        #[command(flatten)]
        database: database::Arguments,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// The account of the key; it is created if it does not exist. A name has 1 to 63 lower-case letters, digits, `.`,
    /// `_` and `-`, and begins with a letter or digit.
    #[arg(long, value_name = "NAME", value_parser = parse::ACCOUNT)]
    account: String,
    /// OWNER: everything. EDITOR: everything inside Namespaces, but not the audit log. VIEWER: read only.
    #[arg(long, default_value = "OWNER")]
    role: Role,
    /// Limit the key to this Namespace (`namespaces/…`); can be repeated.
    #[arg(long, value_name = "NAME")]
    namespace: Vec<NamespaceName>,
    /// Lifetime of the key, such as `30d`: from `1m` to `3650d`; unlimited by default.
    #[arg(long, value_name = "TIME", value_parser = parse::EXPIRY)]
    expires_in: Option<Duration>,
    /// Accept the key only from this network, such as `198.51.100.0/24`; can be repeated. Behind a load balancer,
    /// `gateway.trusted_proxies` has to name it.
    #[arg(long, value_name = "CIDR", value_parser = parse::NETWORK)]
    network: Vec<IpNet>,
    #[command(flatten)]
    database: database::Arguments,
}

#[derive(Debug, Args)]
pub(crate) struct Rotate {
    /// The id: the 26 characters after `esk_`. The whole key is accepted too.
    #[arg(value_parser = parse::KEY)]
    id: Id,
    /// How long the old key still works, such as `24h`: from `0s` to `90d`. It never works longer than before.
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse::GRACE)]
    grace: Duration,
    #[command(flatten)]
    database: database::Arguments,
}

pub(crate) fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Create(arguments) => {
            let key = with(&arguments.database, async |conn| {
                create(conn, &arguments).await
            })?;
            println!("{}", key.expose());
            Ok(())
        }
        Command::Rotate(arguments) => {
            let key = with(&arguments.database, async |conn| {
                rotate(conn, &arguments).await
            })?;
            println!("{}", key.expose());
            Ok(())
        }
        Command::List { database } => with(&database, async |conn| list(conn).await),
        Command::Revoke { id, database } => with(&database, async |conn| revoke(conn, id).await),
    }
}

pub(crate) fn with<T>(
    database: &database::Arguments,
    work: impl AsyncFnOnce(&mut AsyncPgConnection) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let database = database.open()?;
    block_on(async {
        let mut conn = store::establish(&database.url)
            .await
            .context("cannot connect to the database")?;
        work(&mut conn).await
    })
}

async fn create(conn: &mut AsyncPgConnection, arguments: &Create) -> anyhow::Result<ApiKey> {
    let now = Timestamp::now();
    let account = keys::ensure_account(conn, &arguments.account, now)
        .await
        .with_context(|| format!("cannot create the account `{}`", arguments.account))?;
    let mut narrowed = Vec::new();
    for name in &arguments.namespace {
        if namespaces::account(conn, name.namespace).await? != Some(account) {
            bail!("the account `{}` has no {name}", arguments.account);
        }
        narrowed.push(name.namespace);
    }
    let narrowed = (!narrowed.is_empty()).then_some(narrowed);
    let expire_time = arguments.expires_in.map(|time| now.plus(time));
    let key = ApiKey::generate();
    let new = NewKey {
        account,
        key: &key,
        role: arguments.role,
        namespaces: narrowed.as_deref(),
        networks: (!arguments.network.is_empty()).then_some(&arguments.network),
        expire_time,
    };
    conn.transaction::<_, store::QueryError, _>(async |conn| {
        keys::insert(conn, new, now).await?;
        record(conn, account, Action::Create, key.id).await
    })
    .await?;
    Ok(key)
}

/// Creates the new key and limits the old one in one transaction: there is always a valid key, and a new key never
/// leaves the old one without an end. The old key stays locked, so that one revoked meanwhile gets no successor.
async fn rotate(conn: &mut AsyncPgConnection, arguments: &Rotate) -> anyhow::Result<ApiKey> {
    let (id, now) = (arguments.id, Timestamp::now());
    let key = ApiKey::generate();
    let grace_end = now.plus(arguments.grace);
    let (old_expires, new_expires) = conn
        .transaction::<_, anyhow::Error, _>(async |conn| {
            keys::lock(conn, id).await?;
            let Some(old) = keys::find(conn, id).await? else {
                bail!("there is no key {id}");
            };
            if !old.is_valid(now) {
                bail!(
                    "the key {id} has expired or was revoked: create a new one with `earshot keys create`"
                );
            }
            let new = NewKey {
                account: old.account,
                key: &key,
                role: old.role,
                namespaces: old.namespaces.as_deref(),
                networks: old.networks.as_deref(),
                // The new key has the same lifetime as the old one.
                expire_time: old
                    .expire_time
                    .map(|time| now.plus(time.since(old.create_time))),
            };
            keys::insert(conn, new, now).await?;
            record(conn, old.account, Action::Create, key.id).await?;
            if keys::expire_by(conn, id, grace_end).await? {
                let mut entry = Entry::of_account(Action::Update, format_args!("keys/{id}"));
                entry.fields = vec!["expireTime".to_owned()];
                audit::record_of_operator(conn, old.account, &entry).await?;
            }
            let old_expires = old.expire_time.map_or(grace_end, |time| time.min(grace_end));
            Ok((old_expires, new.expire_time))
        })
        .await?;
    eprintln!("{id} works until {old_expires}");
    if let Some(time) = new_expires {
        eprintln!("{} works until {time}", key.id);
    }
    Ok(key)
}

async fn list(conn: &mut AsyncPgConnection) -> anyhow::Result<()> {
    println!("ID\tACCOUNT\tROLE\tSTATE\tCREATED\tEXPIRES\tLAST USED\tNAMESPACES\tNETWORKS");
    let now = Timestamp::now();
    let mut expiring = 0;
    for key in keys::list(conn).await? {
        let state = match (key.revoke_time, key.is_valid(now)) {
            (Some(_), _) => "revoked",
            (None, false) => "expired",
            (None, true) if !key.is_valid(now.plus(keys::EXPIRES_SOON)) => "expiring",
            (None, true) => "valid",
        };
        expiring += u32::from(state == "expiring");
        let time =
            |time: Option<Timestamp>| time.map_or("never".to_owned(), |time| time.to_string());
        println!(
            "{}\t{}\t{}\t{state}\t{}\t{}\t{}\t{}\t{}",
            key.id,
            key.account_name,
            key.role.as_str(),
            key.create_time,
            time(key.expire_time),
            time(key.last_use_time),
            joined(key.namespaces.as_deref()),
            joined(key.networks.as_deref()),
        );
    }
    if expiring > 0 {
        eprintln!(
            "keys that expire within 14 days: {expiring}; `earshot keys rotate ID` replaces one"
        );
    }
    Ok(())
}

fn joined<T: ToString>(limits: Option<&[T]>) -> String {
    limits.map_or("all".to_owned(), |limits| {
        let texts: Vec<_> = limits.iter().map(ToString::to_string).collect();
        texts.join(",")
    })
}

async fn revoke(conn: &mut AsyncPgConnection, id: Id) -> anyhow::Result<()> {
    let Some(key) = keys::find(conn, id).await? else {
        bail!("there is no key {id}");
    };
    let is_revoked = conn
        .transaction::<_, store::QueryError, _>(async |conn| {
            let is_revoked = keys::revoke(conn, id, Timestamp::now()).await?;
            if is_revoked {
                record(conn, key.account, Action::Revoke, id).await?;
            }
            Ok(is_revoked)
        })
        .await?;
    if !is_revoked {
        eprintln!("{id} was already revoked");
    }
    Ok(())
}

/// Records in the account's audit log what the operator did with a key.
async fn record(
    conn: &mut AsyncPgConnection,
    account: Id,
    action: Action,
    key: Id,
) -> QueryResult<()> {
    let entry = Entry::of_account(action, format_args!("keys/{key}"));
    audit::record_of_operator(conn, account, &entry).await
}
