//! `earshot sessions`: who has signed in to the console.

use anyhow::bail;
use clap::{Args, Subcommand};
use domain::{
    Id, Timestamp,
    audit::{Action, Entry},
};
use store::{AsyncConnection, AsyncPgConnection, audit, keys};

use crate::{
    database,
    keys::{parse, with},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List sessions, without their tokens.
    List {
        #[command(flatten)]
        database: database::Arguments,
    },
    /// Revoke a session, or all sessions of a person; they stop working within five seconds.
    Revoke(Revoke),
}

#[derive(Debug, Args)]
pub(crate) struct Revoke {
    /// The id of a session, as `earshot sessions list` shows it.
    #[arg(value_parser = parse::KEY, required_unless_present = "person", conflicts_with = "person")]
    id: Option<Id>,
    /// Revoke all sessions of this person, by the name or the subject that `earshot sessions list` shows. The subject
    /// finds all of them, because people may be able to change their name at the provider. They can sign in again until
    /// the provider or `gateway.oidc.grants` forbids it.
    #[arg(long, value_name = "NAME")]
    person: Option<String>,
    #[command(flatten)]
    database: database::Arguments,
}

pub(crate) fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::List { database } => with(&database, async |conn| list(conn).await),
        Command::Revoke(arguments) => with(&arguments.database, async |conn| {
            revoke(conn, &arguments).await
        }),
    }
}

async fn list(conn: &mut AsyncPgConnection) -> anyhow::Result<()> {
    println!("ID\tPERSON\tSUBJECT\tACCOUNT\tROLE\tSTATE\tSIGNED IN\tEXPIRES\tLAST USED");
    let now = Timestamp::now();
    for session in keys::list_sessions(conn).await? {
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

async fn revoke(conn: &mut AsyncPgConnection, arguments: &Revoke) -> anyhow::Result<()> {
    let now = Timestamp::now();
    let mut sessions = keys::list_sessions(conn).await?;
    sessions.retain(|session| match arguments.id {
        Some(id) => session.id == id,
        None => session.person == arguments.person || session.subject == arguments.person,
    });
    if sessions.is_empty() {
        bail!("there is no such session");
    }
    let mut revoked = 0;
    for session in sessions.iter().filter(|session| session.is_valid(now)) {
        let person = session.person.as_deref().unwrap_or_default();
        let resource = format!("people/{person}/sessions/{}", session.id);
        let is_revoked = conn
            .transaction::<_, store::QueryError, _>(async |conn| {
                let is_revoked = keys::revoke(conn, session.id, now).await?;
                if is_revoked {
                    let entry = Entry::of_account(Action::Revoke, &resource);
                    audit::record_of_operator(conn, session.account, &entry).await?;
                }
                Ok(is_revoked)
            })
            .await?;
        revoked += u32::from(is_revoked);
    }
    eprintln!("sessions revoked: {revoked}");
    Ok(())
}
