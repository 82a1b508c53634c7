//! Recipients of e-mail: who wants it, who was asked, and what their servers accepted.
//!
//! Addresses are sealed with their Connection; here they are known by their digest.

use std::{collections::HashMap, time::Duration};

use diesel::{
    prelude::*,
    sql_types::{Array, BigInt, Bytea, Double, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, Id, Timestamp, connection::RecipientState};
use uuid::Uuid;

use crate::{
    Error, QueryError, QueryResult, connections,
    prepared::query,
    schema::{mail_receipts, mail_recipients},
    words,
};

pub mod token;

/// [`domain::connection::MailAddress::digest`] of an address.
pub type Digest = [u8; 32];

/// Reason of a Connection without any recipient who may get mail.
pub const NO_RECIPIENT: &str = "every recipient unsubscribed, or does not exist";

/// States of the recipients of Connections of a Namespace. Served by the primary key.
///
/// # Errors
/// If a newer version wrote a state that this one does not know.
pub async fn states(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    connections: &[Id],
) -> Result<HashMap<(Id, Digest), RecipientState>, Error> {
    let ids: Vec<Uuid> = connections.iter().map(|id| id.to_uuid()).collect();
    let rows: Vec<(Uuid, Vec<u8>, String)> = mail_recipients::table
        .filter(mail_recipients::namespace_id.eq(namespace.to_uuid()))
        .filter(mail_recipients::connection_id.eq_any(ids))
        .select((
            mail_recipients::connection_id,
            mail_recipients::address_digest,
            mail_recipients::state,
        ))
        .load(conn)
        .await?;
    let mut states = HashMap::new();
    for (connection, digest, state) in rows {
        // A constraint checks its length.
        if let Ok(digest) = Digest::try_from(digest) {
            states.insert((Id::from_uuid(connection), digest), words::parse(&state)?);
        }
    }
    Ok(states)
}

/// Result of [`set_state`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// There is no such recipient: the owner removed the address, or deleted the Connection. Or one that unsubscribed was to
    /// be [`RecipientState::Refused`].
    Gone,
    Stored,
    /// The recipient was the last one who may get mail, so the Connection was disabled.
    Disabled,
}

/// Sets the state of a recipient. Disables the Connection if no recipient is left who gets mail or may still confirm.
///
/// Who unsubscribes is not asked again for any Connection of the account, until they confirm one. This holds even if the
/// Connection is gone.
pub async fn set_state(
    conn: &mut AsyncPgConnection,
    name: ConnectionName,
    digest: Digest,
    state: RecipientState,
    now: Timestamp,
) -> QueryResult<Changed> {
    conn.transaction::<_, QueryError, _>(async |conn| {
        let found = query!(
            "mail/set_state",
            SqlUuid: name.namespace.to_uuid(),
            SqlUuid: name.connection.to_uuid(),
            Bytea: digest.to_vec(),
            Text: state.as_str(),
        )
        .execute(conn)
        .await?;
        if state == RecipientState::Unsubscribed {
            query!(
                "mail/refuse",
                SqlUuid: name.namespace.to_uuid(),
                Bytea: digest.to_vec(),
            )
            .execute(conn)
            .await?;
        }
        if found == 0 {
            return Ok(Changed::Gone);
        }
        if state == RecipientState::Confirmed {
            query!(
                "mail/accept",
                SqlUuid: name.namespace.to_uuid(),
                Bytea: digest.to_vec(),
            )
            .execute(conn)
            .await?;
        }
        let left: i64 = mail_recipients::table
            .filter(mail_recipients::namespace_id.eq(name.namespace.to_uuid()))
            .filter(mail_recipients::connection_id.eq(name.connection.to_uuid()))
            .filter(mail_recipients::state.eq_any(["PENDING", "CONFIRMED"]))
            .count()
            .get_result(conn)
            .await?;
        if left > 0 || !connections::disable(conn, name, NO_RECIPIENT, now).await? {
            return Ok(Changed::Stored);
        }
        Ok(Changed::Disabled)
    })
    .await
}

/// Returns up to `limit` recipients to ask to confirm, and marks them as asked. Each address is given once a day, over all replicas and
/// accounts, and at most `per_account` for an account. An account gets no address that has refused it, and none that it
/// [`asked`] within 30 days without an answer. Served by `mail_recipients_to_ask_idx`.
pub async fn take_to_ask(
    conn: &mut AsyncPgConnection,
    limit: i64,
    per_account: i64,
) -> QueryResult<Vec<(ConnectionName, Digest)>> {
    #[derive(QueryableByName)]
    struct Taken {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        connection_id: Uuid,
        #[diesel(sql_type = Bytea)]
        address_digest: Vec<u8>,
    }
    let taken: Vec<Taken> = query!(
        "mail/take_to_ask",
        BigInt: limit,
        BigInt: per_account,
    )
    .load(conn)
    .await?;
    let recipient = |taken: Taken| {
        let name = ConnectionName {
            namespace: Id::from_uuid(taken.namespace_id),
            connection: Id::from_uuid(taken.connection_id),
        };
        Some((name, Digest::try_from(taken.address_digest).ok()?))
    };
    Ok(taken.into_iter().filter_map(recipient).collect())
}

/// Records that a recipient was asked to confirm.
pub async fn asked(
    conn: &mut AsyncPgConnection,
    name: ConnectionName,
    digest: Digest,
    now: Timestamp,
) -> QueryResult<()> {
    query!(
        "mail/asked",
        SqlUuid: name.namespace.to_uuid(),
        SqlUuid: name.connection.to_uuid(),
        Bytea: digest.to_vec(),
        Timestamptz: now.to_chrono(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Lets an address be asked after `wait`: the request certainly did not reach it.
pub async fn ask_again(
    conn: &mut AsyncPgConnection,
    digest: Digest,
    wait: Duration,
) -> QueryResult<()> {
    query!(
        "mail/ask_again",
        Bytea: digest.to_vec(),
        Double: wait.as_secs_f64(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns the recipients whose servers have accepted the mail of a delivery, since it was last reopened. Served by the
/// primary key.
pub async fn receipts(
    conn: &mut AsyncPgConnection,
    delivery: Id,
    reopen_time: Option<Timestamp>,
) -> QueryResult<Vec<Vec<u8>>> {
    let since = reopen_time.unwrap_or(Timestamp::UNIX_EPOCH);
    mail_receipts::table
        .filter(mail_receipts::delivery_id.eq(delivery.to_uuid()))
        .filter(mail_receipts::time.ge(since.to_chrono()))
        .select(mail_receipts::address_digest)
        .load(conn)
        .await
}

/// Records that the servers of these recipients have accepted the mail of a delivery that others get by another attempt.
pub async fn record_receipts(
    conn: &mut AsyncPgConnection,
    delivery: Id,
    digests: &[Digest],
) -> QueryResult<()> {
    let digests: Vec<Vec<u8>> = digests.iter().map(|digest| digest.to_vec()).collect();
    query!(
        "mail/record_receipts",
        SqlUuid: delivery.to_uuid(),
        Array<Bytea>: digests,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Removes what nothing needs any more: requests to confirm that limit no other one any more, and receipts of deliveries that no one
/// tries any more after `max_age`.
pub async fn purge(conn: &mut AsyncPgConnection, max_age: Duration) -> QueryResult<()> {
    query!("mail/purge_addresses").execute(conn).await?;
    query!(
        "mail/purge_receipts",
        Double: max_age.as_secs_f64(),
    )
    .execute(conn)
    .await?;
    Ok(())
}
