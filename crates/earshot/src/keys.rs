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
use store::{AsyncConnection, AsyncPgConnection, QueryResult, audit, keys, namespaces};

use crate::{block_on, database};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a key and print it. It is shown only once: only its hash is stored.
    Create(Create),
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
    conn.transaction::<_, store::QueryError, _>(async |conn| {
        let (role, narrowed) = (arguments.role, narrowed.as_deref());
        keys::insert(conn, account, &key, role, narrowed, now, expire_time).await?;
        record(conn, account, Action::Create, key.id).await
    })
    .await?;
    Ok(key)
}

async fn list(conn: &mut AsyncPgConnection) -> anyhow::Result<()> {
    println!("ID\tACCOUNT\tROLE\tSTATE\tCREATED\tEXPIRES\tNAMESPACES");
    let now = Timestamp::now();
    for key in keys::list(conn).await? {
        let state = match (key.revoke_time, key.is_valid(now)) {
            (Some(_), _) => "revoked",
            (None, true) => "valid",
            (None, false) => "expired",
        };
        let expires = key
            .expire_time
            .map_or_else(|| "never".to_owned(), |time| time.to_string());
        let namespaces = key.namespaces.map_or_else(
            || "all".to_owned(),
            |ids| {
                ids.iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(",")
            },
        );
        println!(
            "{}\t{}\t{}\t{state}\t{}\t{expires}\t{namespaces}",
            key.id,
            key.account_name,
            key.role.as_str(),
            key.create_time
        );
    }
    Ok(())
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
