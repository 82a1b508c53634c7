//! `earshot sessions`: who has signed in to the console.

use anyhow::bail;
use clap::{Args, Subcommand};
use domain::{
    Id, Timestamp,
    audit::{Action, Entry},
};
use store::{
    AsyncConnection, AsyncPgConnection, audit,
    keys::{self, KeyRecord, SessionFilter},
    sessions,
};

use crate::{
    database,
    keys::{parse, with},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List valid sessions, without their tokens.
    List {
        /// Also list sessions that were revoked or have expired.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        database: database::Arguments,
    },
    /// Revoke a session, or the sessions and sign-ins in progress of a person, of an account, or all; they stop working
    /// within five seconds.
    Revoke(Revoke),
}

#[derive(Debug, Args)]
pub(crate) struct Revoke {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    database: database::Arguments,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// The id of a session, as `earshot sessions list` shows it.
    #[arg(value_parser = parse::KEY)]
    id: Option<Id>,
    /// Revoke all sessions of this person, by the name or the subject that `earshot sessions list` shows. The subject
    /// finds all of them, because people may be able to change their name at the provider. They can sign in again until
    /// the provider or `gateway.oidc.grants` forbids it.
    #[arg(long, value_name = "NAME")]
    person: Option<String>,
    /// Revoke all sessions of this account.
    #[arg(long, value_name = "NAME", value_parser = parse::ACCOUNT)]
    account: Option<String>,
    /// Revoke all sessions.
    #[arg(long)]
    all: bool,
}

impl Which {
    fn filter(&self) -> SessionFilter<'_> {
        SessionFilter {
            id: self.id,
            person: self.person.as_deref(),
            account: self.account.as_deref(),
            expired: false,
        }
    }
}

pub(crate) fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::List { all, database } => with(&database, async |conn| list(conn, all).await),
        Command::Revoke(arguments) => {
            let summary = with(&arguments.database, async |conn| {
                revoke(conn, &arguments.which).await
            })?;
            eprintln!("{summary}");
            Ok(())
        }
    }
}

async fn list(conn: &mut AsyncPgConnection, all: bool) -> anyhow::Result<()> {
    println!("ID\tPERSON\tSUBJECT\tACCOUNT\tROLE\tSTATE\tSIGNED IN\tEXPIRES\tLAST USED");
    let now = Timestamp::now();
    for session in listed(conn, all, now).await? {
        let state = match (session.revoke_time, session.is_valid(now)) {
            (Some(_), _) => "revoked",
            (None, false) => "expired",
            (None, true) => "valid",
        };
        let time =
            |time: Option<Timestamp>| time.map_or("never".to_owned(), |time| time.to_string());
        println!(
            "{}\t{}\t{}\t{}\t{}\t{state}\t{}\t{}\t{}",
            session.id,
            session.person.as_deref().unwrap_or_default(),
            session.subject.as_deref().unwrap_or_default(),
            session.account_name,
            session.role.as_str(),
            session.create_time,
            time(session.expire_time),
            time(session.last_use_time),
        );
    }
    Ok(())
}

/// Returns the valid sessions, or all.
async fn listed(
    conn: &mut AsyncPgConnection,
    all: bool,
    now: Timestamp,
) -> store::QueryResult<Vec<KeyRecord>> {
    let filter = SessionFilter {
        expired: all,
        ..SessionFilter::default()
    };
    let mut sessions = keys::list_sessions(conn, filter).await?;
    sessions.retain(|session| all || session.is_valid(now));
    Ok(sessions)
}

/// Returns what was revoked.
async fn revoke(conn: &mut AsyncPgConnection, which: &Which) -> anyhow::Result<String> {
    let now = Timestamp::now();
    let (sign_ins, found, revoked) = conn
        .transaction::<_, store::QueryError, _>(async |conn| {
            // First: a sign-in that becomes a session meanwhile is then among the sessions.
            let sign_ins = match which.id {
                Some(_) => 0,
                None => {
                    let (person, account) = (which.person.as_deref(), which.account.as_deref());
                    sessions::forget(conn, person, account).await?
                }
            };
            let found = keys::list_sessions(conn, which.filter()).await?;
            let mut revoked = 0;
            for session in &found {
                let person = session.person.as_deref().unwrap_or_default();
                if keys::revoke(conn, session.id, now).await? {
                    let entry =
                        Entry::of_account(Action::Revoke, sessions::name(person, session.id));
                    audit::record_of_operator(conn, session.account, &entry).await?;
                    revoked += 1;
                }
            }
            Ok((sign_ins, found.len(), revoked))
        })
        .await?;
    if sign_ins == 0 && found == 0 {
        bail!("there is no such session");
    }
    Ok(format!(
        "sessions revoked: {revoked}, sign-ins stopped: {sign_ins}"
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser as _;
    use domain::key::{ApiKey, Role};
    use store::sessions::{Grant, GrantOutcome, SignIn};
    use test_support::TestDatabase;

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    #[derive(clap::Parser)]
    struct Line {
        #[command(subcommand)]
        command: Command,
    }

    async fn run(conn: &mut AsyncPgConnection, flags: &[&str]) -> Result<String, String> {
        let line = ["sessions", "revoke"];
        let line = Line::try_parse_from(line.iter().chain(flags)).unwrap();
        let Command::Revoke(arguments) = line.command else {
            panic!("another command");
        };
        let outcome = revoke(conn, &arguments.which).await;
        outcome.map_err(|error| error.to_string())
    }

    fn sign_in(number: u8) -> SignIn {
        SignIn {
            state_hash: [number; 32],
            browser_hash: [number; 32],
        }
    }

    /// Lets a person come back from the provider.
    async fn grant(
        conn: &mut AsyncPgConnection,
        number: u8,
        account: &str,
        [person, subject]: [&str; 2],
    ) {
        keys::ensure_account(conn, account, Timestamp::now())
            .await
            .unwrap();
        let grant = Grant {
            account,
            role: Role::Viewer,
            person,
            subject,
        };
        let sign_in = sign_in(number);
        let begun = sessions::begin(conn, &sign_in, "192.0.2.1", b"sealed").await;
        begun.unwrap();
        let taken = sessions::take(conn, &sign_in).await.unwrap();
        assert!(taken.is_some());
        let outcome = sessions::grant(conn, &sign_in, grant).await;
        assert_eq!(outcome.unwrap(), GrantOutcome::Done);
    }

    /// Opens the session of a sign-in that was granted, and returns its id.
    async fn open(conn: &mut AsyncPgConnection, number: u8) -> Option<Id> {
        let (key, browser) = (ApiKey::generate(), sign_in(number).browser_hash);
        let session = sessions::open(conn, &browser, &key, HOUR).await.unwrap();
        session.map(|_| key.id)
    }

    #[tokio::test]
    async fn sessions_of_a_person_are_found_by_name_and_by_subject() {
        let database = TestDatabase::create().await;
        let conn = &mut database.connect().await;
        let mut ids = Vec::new();
        for (number, who) in (0..).zip([["jane", "7"], ["janet", "7"], ["joe", "8"]]) {
            grant(conn, number, "acme", who).await;
            ids.push(open(conn, number).await.unwrap());
        }
        let done = run(conn, &["--person", "7"]).await;
        assert_eq!(done.unwrap(), "sessions revoked: 2, sign-ins stopped: 0");
        let again = run(conn, &["--person", "jane"]).await;
        assert_eq!(again.unwrap(), "sessions revoked: 0, sign-ins stopped: 0");
        let unknown = run(conn, &["--person", "jan"]).await;
        assert_eq!(unknown.unwrap_err(), "there is no such session");
        let mut recorded = database
            .texts("action || ' ' || resource", "audit_events")
            .await;
        recorded.sort_unstable();
        let expected = ["jane", "janet"].iter().zip(&ids);
        let expected = expected.map(|(who, id)| format!("REVOKE people/{who}/sessions/{id}"));
        assert_eq!(recorded, expected.collect::<Vec<_>>());
        let done = run(conn, &[&ids[2].to_string()]).await;
        assert_eq!(done.unwrap(), "sessions revoked: 1, sign-ins stopped: 0");
    }

    #[tokio::test]
    async fn session_that_looks_expired_to_the_operators_clock_is_revoked() {
        let database = TestDatabase::create().await;
        let conn = &mut database.connect().await;
        grant(conn, 1, "acme", ["jane", "7"]).await;
        let id = open(conn, 1).await.unwrap();
        let slow = "UPDATE api_keys SET expire_time = clock_timestamp() - interval '1 minute'";
        database.run(slow).await;
        let done = run(conn, &[&id.to_string()]).await;
        assert_eq!(done.unwrap(), "sessions revoked: 1, sign-ins stopped: 0");
        let session = keys::find(conn, id).await.unwrap().unwrap();
        assert!(session.revoke_time.is_some());
    }

    #[tokio::test]
    async fn session_that_expired_long_ago_is_listed_with_all_and_not_revoked() {
        let database = TestDatabase::create().await;
        let conn = &mut database.connect().await;
        grant(conn, 1, "acme", ["jane", "7"]).await;
        let old = open(conn, 1).await.unwrap().to_string();
        let long_ago = "UPDATE api_keys SET expire_time = clock_timestamp() - interval '25 hours'";
        database.run(long_ago).await;
        for flags in [
            &["--all"][..],
            &["--account", "acme"],
            &["--person", "7"],
            &[&*old],
        ] {
            let refused = run(conn, flags).await.unwrap_err();
            assert_eq!(refused, "there is no such session", "{flags:?}");
        }
        assert_eq!(database.count("audit_events").await, 0);

        grant(conn, 2, "acme", ["jane", "7"]).await;
        let valid = open(conn, 2).await.unwrap();
        let now = Timestamp::now();
        let sessions = listed(conn, false, now).await.unwrap();
        let ids: Vec<_> = sessions.iter().map(|session| session.id).collect();
        assert_eq!(ids, [valid]);
        assert_eq!(listed(conn, true, now).await.unwrap().len(), 2);
        keys::revoke(conn, valid, now).await.unwrap();
        assert!(listed(conn, false, now).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn sign_in_in_progress_of_a_revoked_person_leads_to_no_session() {
        let database = TestDatabase::create().await;
        let conn = &mut database.connect().await;
        for person in ["jane", "7"] {
            grant(conn, 1, "acme", ["jane", "7"]).await;
            let done = run(conn, &["--person", person]).await;
            assert_eq!(done.unwrap(), "sessions revoked: 0, sign-ins stopped: 1");
            assert_eq!(open(conn, 1).await, None);
        }
        grant(conn, 1, "acme", ["joe", "8"]).await;
        let unknown = run(conn, &["--person", "jane"]).await;
        assert_eq!(unknown.unwrap_err(), "there is no such session");
        assert!(open(conn, 1).await.is_some());
    }

    #[tokio::test]
    async fn sessions_and_sign_ins_of_an_account_or_of_all_are_revoked() {
        let database = TestDatabase::create().await;
        let conn = &mut database.connect().await;
        let who = ["jane", "7"];
        for (number, account) in [(1, "acme"), (2, "globex"), (3, "initech")] {
            grant(conn, number, account, who).await;
            assert!(open(conn, number).await.is_some());
            grant(conn, 10 + number, account, who).await;
        }
        let stopped = "sessions revoked: 1, sign-ins stopped: 1";
        let done = run(conn, &["--account", "acme"]).await;
        assert_eq!(done.unwrap(), stopped);
        assert_eq!(open(conn, 11).await, None);
        let unknown = run(conn, &["--account", "nobody"]).await;
        assert_eq!(unknown.unwrap_err(), "there is no such session");
        assert!(open(conn, 12).await.is_some());
        let done = run(conn, &["--all"]).await;
        assert_eq!(done.unwrap(), "sessions revoked: 3, sign-ins stopped: 1");
        assert_eq!(open(conn, 13).await, None);
    }

    #[test]
    fn revoke_takes_one_kind_of_sessions() {
        let id = Id::generate().to_string();
        for wrong in [&[][..], &["--all", "--person", "jane"], &[&*id, "--all"]] {
            let line = ["sessions", "revoke"];
            assert!(Line::try_parse_from(line.iter().chain(wrong)).is_err());
        }
    }
}
