//! Recipients of Connections for e-mail, when their owner enters them. [`crate::mail`] has what follows.

use diesel::sql_types::{Array, Bytea, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, connection::Recipients};

use crate::{QueryResult, prepared::query};

/// Sets the recipients of a Connection to those of `url`. Recipients that stay keep their state; others, and those that
/// their server refused, have to confirm. Who was asked more than 7 days ago may be asked again.
pub(super) async fn set_recipients(
    conn: &mut AsyncPgConnection,
    name: ConnectionName,
    url: &str,
) -> QueryResult<()> {
    let recipients = url.parse::<Recipients>().ok();
    let addresses = recipients.iter().flat_map(Recipients::as_slice);
    let digests: Vec<Vec<u8>> = addresses.map(|one| one.digest().to_vec()).collect();
    query!(
        "connections/set_recipients",
        SqlUuid: name.namespace.to_uuid(),
        SqlUuid: name.connection.to_uuid(),
        Array<Bytea>: digests,
    )
    .execute(conn)
    .await?;
    Ok(())
}
