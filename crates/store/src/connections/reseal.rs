//! Encrypts values of earlier keys again with the current one, and addresses that earlier releases stored unsealed.

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Bytea, Nullable, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, Id};
use uuid::Uuid;

use super::{SEALED, seal_url, secrets_of, url_of};
use crate::{
    Error,
    prepared::query,
    seal::{OpenError, Sealer},
};

/// Result for some Connections.
#[derive(Debug, Default)]
pub struct Resealed {
    /// Number of Connections read.
    pub seen: usize,
    pub changed: usize,
    /// Values whose key is not configured, or that are damaged; they are left unchanged.
    pub unreadable: Vec<(ConnectionName, OpenError)>,
    /// Last Connection read: the next step continues after it.
    pub last: Option<ConnectionName>,
}

#[derive(QueryableByName)]
struct SealedConnection {
    #[diesel(sql_type = SqlUuid)]
    namespace_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = Text)]
    url: String,
    #[diesel(sql_type = Nullable<Bytea>)]
    url_sealed: Option<Vec<u8>>,
    #[diesel(sql_type = Bytea)]
    headers_sealed: Vec<u8>,
    #[diesel(sql_type = Nullable<Bytea>)]
    signing_secrets_sealed: Option<Vec<u8>>,
}

/// Reseals up to `limit` Connections, in the order of their names. A Connection that is written meanwhile keeps the
/// new value, which is already sealed with the current key. By primary key.
///
/// # Errors
/// If the database does not answer. The work done until then stays.
pub async fn reseal(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    after: Option<ConnectionName>,
    limit: i64,
) -> Result<Resealed, Error> {
    let [namespace, connection] = after.map_or([Uuid::nil(); 2], |name| {
        [name.namespace.to_uuid(), name.connection.to_uuid()]
    });
    let rows: Vec<SealedConnection> = query!(
        "connections/next_sealed",
        SqlUuid: namespace,
        SqlUuid: connection,
        BigInt: limit,
    )
    .load(conn)
    .await?;
    let mut done = Resealed::default();
    for row in rows {
        let name = ConnectionName {
            namespace: Id::from_uuid(row.namespace_id),
            connection: Id::from_uuid(row.id),
        };
        done.seen += 1;
        done.last = Some(name);
        match row.resealed(name, sealer) {
            Ok(None) => {}
            Ok(Some(sealed)) => done.changed += row.replace(conn, sealed).await?,
            Err(error) => done.unreadable.push((name, error)),
        }
    }
    Ok(done)
}

/// Replacement of a row's values.
struct Sealed {
    url: Option<Vec<u8>>,
    headers: Vec<u8>,
    secrets: Option<Vec<u8>>,
}

impl SealedConnection {
    /// Returns `None` if everything is already sealed with the current key.
    fn resealed(&self, name: ConnectionName, sealer: &Sealer) -> Result<Option<Sealed>, OpenError> {
        let url = match &self.url_sealed {
            _ if !self.url.is_empty() => Some(seal_url(&self.url, name, sealer)),
            Some(sealed) => sealer.reseal(sealed, &url_of(name))?,
            None => None,
        };
        let headers = sealer.reseal(&self.headers_sealed, &name.to_string())?;
        let secrets = match &self.signing_secrets_sealed {
            Some(sealed) => sealer.reseal(sealed, &secrets_of(name))?,
            None => None,
        };
        if url.is_none() && headers.is_none() && secrets.is_none() {
            return Ok(None);
        }
        Ok(Some(Sealed {
            url: url.or_else(|| self.url_sealed.clone()),
            headers: headers.unwrap_or_else(|| self.headers_sealed.clone()),
            secrets: secrets.or_else(|| self.signing_secrets_sealed.clone()),
        }))
    }

    async fn replace(&self, conn: &mut AsyncPgConnection, sealed: Sealed) -> Result<usize, Error> {
        let changed = query!(
            "connections/reseal",
            SqlUuid: self.namespace_id,
            SqlUuid: self.id,
            Bytea: sealed.headers,
            Nullable<Bytea>: sealed.secrets,
            Nullable<Bytea>: sealed.url,
            Text: SEALED,
            Bytea: &self.headers_sealed,
            Nullable<Bytea>: self.signing_secrets_sealed.as_ref(),
            Nullable<Bytea>: self.url_sealed.as_ref(),
            Text: &self.url,
        )
        .execute(conn)
        .await?;
        Ok(changed)
    }
}
