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
    keys::{self, NewKey, Rotation},
    namespaces, sessions,
};

use crate::{block_on, database};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a key and print it. It is shown only once: only its hash is stored.
    Create(Create),
    /// Create a key like another one, and let the other expire later; both work until then. Each key is replaced once.
    Rotate(Rotate),
    /// Set the networks that a key is accepted from, in place of the former ones; it takes effect within five seconds.
    SetNetworks(SetNetworks),
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

#[derive(Debug, Args)]
pub(crate) struct SetNetworks {
    /// The id: the 26 characters after `esk_`. The whole key is accepted too.
    #[arg(value_parser = parse::KEY)]
    id: Id,
    #[command(flatten)]
    networks: Networks,
    #[command(flatten)]
    database: database::Arguments,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Networks {
    /// Accept the key only from this network, such as `198.51.100.0/24`; can be repeated.
    #[arg(long, value_name = "CIDR", value_parser = parse::NETWORK)]
    network: Vec<IpNet>,
    /// Accept the key from all networks.
    #[arg(long)]
    all: bool,
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
        Command::SetNetworks(arguments) => with(&arguments.database, async |conn| {
            set_networks(conn, &arguments).await
        }),
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

async fn rotate(conn: &mut AsyncPgConnection, arguments: &Rotate) -> anyhow::Result<ApiKey> {
    let (id, now) = (arguments.id, Timestamp::now());
    let key = ApiKey::generate();
    let grace_end = now.plus(arguments.grace);
    let rotation = conn
        .transaction::<_, store::QueryError, _>(async |conn| {
            let rotation = keys::rotate(conn, id, &key, grace_end, now).await?;
            if let Rotation::Done { account, .. } = rotation {
                record(conn, account, Action::Create, key.id).await?;
                let mut entry = Entry::of_account(Action::Update, format_args!("keys/{id}"));
                entry.fields = ["expireTime", "replacedBy"].map(str::to_owned).into();
                audit::record_of_operator(conn, account, &entry).await?;
            }
            Ok(rotation)
        })
        .await?;
    match rotation {
        Rotation::Done {
            old_expires,
            new_expires,
            ..
        } => {
            eprintln!("{id} works until {old_expires}");
            if let Some(time) = new_expires {
                eprintln!("{} works until {time}", key.id);
            }
            Ok(key)
        }
        Rotation::Missing => bail!("there is no key {id}"),
        Rotation::Session => bail!("{id} is a session: its person signs in again instead"),
        Rotation::Ended => bail!(
            "the key {id} has expired or was revoked: create a new one with `earshot keys create`"
        ),
        Rotation::Replaced(successor) => bail!(
            "the key {id} was already replaced by {successor}: if that key was lost, rotate it in place of this one"
        ),
    }
}

async fn set_networks(conn: &mut AsyncPgConnection, arguments: &SetNetworks) -> anyhow::Result<()> {
    let Networks { network, all } = &arguments.networks;
    let networks = (!all).then_some(network.as_slice());
    let id = arguments.id;
    let key = keys::find(conn, id).await?;
    if key.is_some_and(|key| key.person.is_some()) {
        bail!("{id} is a session, which has no networks: `earshot sessions revoke` ends it");
    }
    let is_set = conn
        .transaction::<_, store::QueryError, _>(async |conn| {
            let Some(account) = keys::set_networks(conn, id, networks).await? else {
                return Ok(false);
            };
            let mut entry = Entry::of_account(Action::Update, format_args!("keys/{id}"));
            entry.fields = vec!["networks".to_owned()];
            audit::record_of_operator(conn, account, &entry).await?;
            Ok(true)
        })
        .await?;
    if !is_set {
        bail!("there is no key {id}, or it was revoked");
    }
    Ok(())
}

async fn list(conn: &mut AsyncPgConnection) -> anyhow::Result<()> {
    println!(
        "ID\tACCOUNT\tROLE\tSTATE\tCREATED\tEXPIRES\tLAST USED\tNAMESPACES\tNETWORKS\tREPLACED BY"
    );
    let now = Timestamp::now();
    let mut expiring = 0;
    for key in keys::list(conn).await? {
        let state = match (key.revoke_time, key.is_valid(now)) {
            (Some(_), _) => "revoked",
            (None, false) => "expired",
            (None, true) if key.expires_soon(now) => "expiring",
            (None, true) => "valid",
        };
        expiring += u32::from(state == "expiring" && key.replaced_by.is_none());
        let time =
            |time: Option<Timestamp>| time.map_or("never".to_owned(), |time| time.to_string());
        println!(
            "{}\t{}\t{}\t{state}\t{}\t{}\t{}\t{}\t{}\t{}",
            key.id,
            key.account_name,
            key.role.as_str(),
            key.create_time,
            time(key.expire_time),
            time(key.last_use_time),
            joined(key.namespaces.as_deref()),
            joined(key.networks.as_deref()),
            key.replaced_by
                .map_or("none".to_owned(), |id| id.to_string()),
        );
    }
    if expiring > 0 {
        eprintln!("keys that expire soon: {expiring}; `earshot keys rotate ID` replaces one");
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
                let name = match &key.person {
                    Some(person) => sessions::name(person, id),
                    None => format!("keys/{id}"),
                };
                let entry = Entry::of_account(Action::Revoke, name);
                audit::record_of_operator(conn, key.account, &entry).await?;
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;
    use domain::{
        Id, Timestamp,
        key::{ApiKey, Role},
    };
    use store::{
        keys,
        sessions::{self, Grant, GrantOutcome, SignIn},
    };
    use test_support::TestDatabase;

    use super::{Command, revoke, set_networks};

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        command: Command,
    }

    #[tokio::test]
    async fn session_is_revoked_as_one_and_gets_no_networks() {
        let database = TestDatabase::create().await;
        let conn = &mut database.connect().await;
        let now = Timestamp::now();
        keys::ensure_account(conn, "acme", now).await.unwrap();
        let sign_in = SignIn {
            state_hash: [1; 32],
            browser_hash: [1; 32],
        };
        let grant = Grant {
            account: "acme",
            role: Role::Owner,
            person: "jane",
            subject: "7",
        };
        let begun = sessions::begin(conn, &sign_in, "192.0.2.1", b"sealed").await;
        begun.unwrap();
        let taken = sessions::take(conn, &sign_in).await.unwrap();
        assert!(taken.is_some());
        let outcome = sessions::grant(conn, &sign_in, grant).await;
        assert_eq!(outcome.unwrap(), GrantOutcome::Done);
        let (key, lasts) = (ApiKey::generate(), Duration::from_hours(1));
        let opened = sessions::open(conn, &sign_in.browser_hash, &key, lasts).await;
        assert!(opened.unwrap().is_some());

        let id = key.id.to_string();
        let line = ["keys", "set-networks", &id, "--network", "192.0.2.0/24"];
        let Command::SetNetworks(arguments) = Line::try_parse_from(line).unwrap().command else {
            panic!("another command");
        };
        let refused = set_networks(conn, &arguments).await.unwrap_err();
        assert!(refused.to_string().contains("is a session"), "{refused}");
        let session = keys::find(conn, key.id).await.unwrap().unwrap();
        assert_eq!(session.networks, None);

        revoke(conn, key.id).await.unwrap();
        let recorded = database.texts("resource", "audit_events").await;
        assert_eq!(recorded, [format!("people/jane/sessions/{id}")]);
    }

    /// The networks that the arguments set, or the exit code.
    fn parse(arguments: &[&str]) -> Result<Vec<String>, i32> {
        let id = Id::generate().to_string();
        let line = ["keys", "set-networks", &id];
        match Line::try_parse_from(line.iter().chain(arguments)) {
            Ok(Line {
                command: Command::SetNetworks(given),
            }) => {
                let networks = given.networks.network.iter();
                Ok(networks.map(ToString::to_string).collect())
            }
            Ok(_) => panic!("another command"),
            Err(error) => Err(error.exit_code()),
        }
    }

    #[test]
    fn set_networks_takes_networks_or_all() {
        assert_eq!(parse(&["--all"]), Ok(vec![]));
        let given = ["--network", "198.51.100.0/24", "--network=2001:db8::/32"];
        let networks = ["198.51.100.0/24", "2001:db8::/32"].map(str::to_owned);
        assert_eq!(parse(&given), Ok(networks.into()));
        for wrong in [
            &[][..],
            &["--network"],
            &["--network", "office"],
            &["--all", "--network", "198.51.100.0/24"],
        ] {
            assert_eq!(parse(wrong), Err(2), "{wrong:?}");
        }
    }
}
