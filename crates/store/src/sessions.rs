//! Sign-ins to the console, and the sessions that they end in.
//!
//! A sign-in has three steps, which any replica may take: [`begin`] when the browser leaves for the provider, [`take`] and
//! [`grant`] when it comes back, and [`open`] when the console asks for its token. Each step uses up what the one before
//! has stored, so none can be repeated. Only hashes of what the browser holds are stored.
//!
//! A session is an API key with a person and an end. So it is found, limited, audited and revoked like a key.

use std::time::Duration;

use diesel::{
    prelude::*,
    sql_types::{BigInt, Binary, Bool, Integer, Interval, Nullable, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    Id,
    key::{ApiKey, Role},
};
use uuid::Uuid;

use crate::{QueryResult, idempotency::interval, prepared::query};

/// How long a person has at the provider.
pub const SIGN_IN_TIME: Duration = Duration::from_mins(10);
/// How long the console has to ask for its token.
const CLAIM_TIME: Duration = Duration::from_mins(1);
/// Maximum number of sign-ins from one origin that wait for the provider.
pub const MAX_PER_ORIGIN: i64 = 100;

/// Identity of a sign-in: SHA-256 of its `state`, and of the cookie of the browser that began it.
#[derive(Debug, Clone, Copy)]
pub struct SignIn {
    pub state_hash: [u8; 32],
    pub browser_hash: [u8; 32],
}

/// Permissions of a person, by the provider and the configuration.
#[derive(Debug, Clone, Copy)]
pub struct Grant<'a> {
    /// Name of an account.
    pub account: &'a str,
    pub role: Role,
    /// Name of the person, which they may be able to change.
    pub person: &'a str,
    /// Permanent identifier of the person at the provider.
    pub subject: &'a str,
}

/// Outcome of [`grant`]. Only [`GrantOutcome::Done`] changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantOutcome {
    Done,
    /// There is no such account.
    NoAccount,
    /// The sign-in was removed by [`forget`], or was not taken.
    Gone,
}

/// A new session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub account: Id,
    pub person: String,
}

/// Name of a session in the audit log, which says whose it is.
pub fn name(person: &str, id: Id) -> String {
    format!("people/{person}/sessions/{id}")
}

/// Stores a new sign-in, in place of the oldest ones of `origin` if it has too many: a client that begins many
/// must not keep others of its network from signing in. `sign_ins_origin_idx` serves the search.
pub async fn begin(
    conn: &mut AsyncPgConnection,
    sign_in: &SignIn,
    origin: &str,
    sealed: &[u8],
) -> QueryResult<()> {
    query!(
        "sign_ins/begin",
        Binary: sign_in.state_hash.as_slice(),
        Binary: sign_in.browser_hash.as_slice(),
        Text: origin,
        Binary: sealed,
        Interval: interval(SIGN_IN_TIME),
        BigInt: MAX_PER_ORIGIN - 1,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Takes a sign-in that came back, and returns the secrets given to [`begin`]. `None` if it does not exist, was taken
/// before, is too old, or was begun by another browser. By primary key.
pub async fn take(conn: &mut AsyncPgConnection, sign_in: &SignIn) -> QueryResult<Option<Vec<u8>>> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = Binary)]
        sealed: Vec<u8>,
    }
    let row: Option<Row> = query!(
        "sign_ins/take",
        Binary: sign_in.state_hash.as_slice(),
        Binary: sign_in.browser_hash.as_slice(),
    )
    .get_result(conn)
    .await
    .optional()?;
    Ok(row.map(|row| row.sealed))
}

/// Stores what the person of a sign-in may do that was taken. By primary key.
pub async fn grant(
    conn: &mut AsyncPgConnection,
    sign_in: &SignIn,
    grant: Grant<'_>,
) -> QueryResult<GrantOutcome> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = Bool)]
        has_account: bool,
        #[diesel(sql_type = Bool)]
        is_granted: bool,
    }
    let row: Row = query!(
        "sign_ins/grant",
        Binary: sign_in.state_hash.as_slice(),
        Binary: sign_in.browser_hash.as_slice(),
        Text: grant.account,
        Text: grant.role.as_str(),
        Text: grant.person,
        Text: grant.subject,
        Interval: interval(CLAIM_TIME),
    )
    .get_result(conn)
    .await?;
    Ok(match row {
        Row {
            has_account: false, ..
        } => GrantOutcome::NoAccount,
        Row {
            is_granted: false, ..
        } => GrantOutcome::Gone,
        Row { .. } => GrantOutcome::Done,
    })
}

/// Opens the session of a browser whose sign-in was granted, with `key` as its token. `None` without such a sign-in. Call
/// it in a transaction. `sign_ins_browser_idx` serves the search.
pub async fn open(
    conn: &mut AsyncPgConnection,
    browser_hash: &[u8; 32],
    key: &ApiKey,
    lasts: Duration,
) -> QueryResult<Option<Session>> {
    #[derive(QueryableByName)]
    struct Claimed {
        #[diesel(sql_type = SqlUuid)]
        account_id: Uuid,
        #[diesel(sql_type = Text)]
        role: String,
        #[diesel(sql_type = Text)]
        person: String,
        #[diesel(sql_type = Text)]
        subject: String,
    }
    let claimed: Vec<Claimed> = query!("sign_ins/claim", Binary: browser_hash.as_slice())
        .load(conn)
        .await?;
    let Some(claimed) = claimed.into_iter().next() else {
        return Ok(None);
    };
    query!(
        "sessions/open",
        SqlUuid: key.id.to_uuid(),
        SqlUuid: claimed.account_id,
        Binary: key.secret_hash().to_vec(),
        Text: &claimed.role,
        Text: &claimed.person,
        Text: &claimed.subject,
        Interval: interval(lasts),
    )
    .execute(conn)
    .await?;
    Ok(Some(Session {
        account: Id::from_uuid(claimed.account_id),
        person: claimed.person,
    }))
}

/// Removes sign-ins that were granted and have not become sessions yet: those of a person by name or subject, and to an
/// account by name; `None` for all. Removes all that were taken and not granted yet, because their person is unknown.
/// Returns their number. Waits for those that become a session at the moment: call it before a look for sessions. Reads all
/// sign-ins.
pub async fn forget(
    conn: &mut AsyncPgConnection,
    person: Option<&str>,
    account: Option<&str>,
) -> QueryResult<usize> {
    query!("sign_ins/forget", Nullable<Text>: person, Nullable<Text>: account)
        .execute(conn)
        .await
}

/// Ends a session. Returns false if it does not exist, or was revoked before.
pub async fn end(conn: &mut AsyncPgConnection, id: Id) -> QueryResult<bool> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = Bool)]
        ended: bool,
    }
    let row: Row = query!("sessions/end", SqlUuid: id.to_uuid())
        .get_result(conn)
        .await?;
    Ok(row.ended)
}

/// Removes up to `limit` sign-ins that were not finished, and up to `limit` sessions that ended `ended_for` ago. Skips rows
/// that another replica is purging. Returns the larger number. `sign_ins_expire_time_idx` and `api_keys_expire_time_idx`
/// serve the searches.
pub async fn purge(
    conn: &mut AsyncPgConnection,
    ended_for: Duration,
    limit: i32,
) -> QueryResult<usize> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = Integer)]
        purged: i32,
    }
    let sign_ins = query!("sign_ins/purge", BigInt: i64::from(limit))
        .execute(conn)
        .await?;
    let sessions: Row = query!(
        "sessions/purge",
        Interval: interval(ended_for),
        Integer: limit,
    )
    .get_result(conn)
    .await?;
    Ok(sign_ins.max(usize::try_from(sessions.purged).unwrap_or(0)))
}
