//! One delivery per Scan and Connection, made once however often the event comes.

use diesel::prelude::*;
use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, Bool, Bytea, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, DeliveryName, Id, ScanName};
use uuid::Uuid;

use super::{Task, time_of};
use crate::{
    Error, QueryResult, connections,
    scans::{PostRow, post_columns},
    schema::scans,
    seal::Sealer,
};

#[derive(QueryableByName)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct Row {
    #[diesel(sql_type = Nullable<SqlUuid>)]
    connection_id: Option<Uuid>,
    #[diesel(sql_type = Nullable<Text>)]
    url: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    method: Option<String>,
    #[diesel(sql_type = Nullable<Bytea>)]
    headers_sealed: Option<Vec<u8>>,
    #[diesel(sql_type = Nullable<Text>)]
    format: Option<String>,
    #[diesel(sql_type = Nullable<diesel::sql_types::Integer>)]
    max_per_second: Option<i32>,
    #[diesel(sql_type = Nullable<Bytea>)]
    signing_secrets_sealed: Option<Vec<u8>>,
    #[diesel(sql_type = Nullable<Text>)]
    state: Option<String>,
    #[diesel(embed)]
    post: PostRow,
}

/// Inserts the deliveries of a Scan, one per Connection in its Manager's notices as they stand, and
/// marks the Scan. Those that `admit` gives a permit are leased to `replica` and returned, ready to be
/// sent without another look at the database; the others, and those of disabled Connections, wait in
/// it. A Scan that was marked before, or is gone, gives none.
///
/// Three statements. Call inside of a transaction: the Scan's row lock makes a second caller wait, and
/// then find the mark.
///
/// # Errors
/// When the database does not answer, or headers cannot be opened: nothing is marked then.
pub async fn fan_out<P>(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    scan: ScanName,
    replica: Uuid,
    mut admit: impl FnMut(ConnectionName) -> Option<P>,
) -> Result<Vec<(Task, P)>, Error> {
    let marked = diesel::update(scans::table)
        .filter(scans::namespace_id.eq(scan.namespace.to_uuid()))
        .filter(scans::manager_id.eq(scan.manager.to_uuid()))
        .filter(scans::create_time.eq(time_of(scan.scan)))
        .filter(scans::id.eq(scan.scan.to_uuid()))
        .filter(scans::fanned_out.eq(false))
        .set(scans::fanned_out.eq(true))
        .execute(conn)
        .await?;
    if marked == 0 {
        return Ok(Vec::new());
    }
    let rows: Vec<Row> = sql_query(concat!(
        "SELECT c.id AS connection_id, c.url, c.method, c.headers_sealed, c.format, c.max_per_second, \
         c.signing_secrets_sealed, c.state, ",
        post_columns!(),
        " FROM scans AS s JOIN posts AS p ON p.receive_time = s.post_receive_time AND p.id = s.post_id \
         JOIN manager_notices AS n ON n.namespace_id = s.namespace_id AND n.manager_id = s.manager_id \
         JOIN connections AS c ON c.namespace_id = n.namespace_id AND c.id = n.connection_id \
         WHERE s.namespace_id = $1 AND s.manager_id = $2 AND s.create_time = $3 AND s.id = $4 ORDER BY n.position"
    ))
    .bind::<SqlUuid, _>(scan.namespace.to_uuid())
    .bind::<SqlUuid, _>(scan.manager.to_uuid())
    .bind::<Timestamptz, _>(time_of(scan.scan))
    .bind::<SqlUuid, _>(scan.scan.to_uuid())
    .load(conn)
    .await?;

    let mut tasks = Vec::new();
    let mut inserts: Vec<(Id, Uuid, bool)> = Vec::new();
    for row in rows {
        let (Some(connection), Some(url), Some(method), Some(sealed)) =
            (row.connection_id, row.url, row.method, row.headers_sealed)
        else {
            continue;
        };
        let name = ConnectionName {
            namespace: scan.namespace,
            connection: Id::from_uuid(connection),
        };
        let id = Id::generate();
        let permit = if row.state.as_deref() == Some("ACTIVE") {
            admit(name)
        } else {
            None
        };
        inserts.push((id, connection, permit.is_some()));
        if let Some(permit) = permit {
            let task = Task {
                delivery: DeliveryName {
                    namespace: scan.namespace,
                    connection: name.connection,
                    delivery: id,
                },
                scan,
                attempt_count: 0,
                schedule_base: 0,
                open_time: id.time(),
                url,
                method: connections::method(&method)?,
                headers: connections::open_headers(&sealed, name, sealer)?,
                format: connections::format(row.format.as_deref().unwrap_or_default())?,
                max_per_second: connections::max_per_second(row.max_per_second),
                signing_secrets: connections::open_secrets(
                    row.signing_secrets_sealed.as_deref(),
                    name,
                    sealer,
                )?,
                post: row.post.into_post()?,
            };
            tasks.push((task, permit));
        }
    }
    insert(conn, scan, replica, &inserts).await?;
    Ok(tasks)
}

/// Of each: its id, its Connection, and whether it is leased. What is due is told by the database's
/// clock alone, by which others look for it; the id's time is only a part of the key.
async fn insert(
    conn: &mut AsyncPgConnection,
    scan: ScanName,
    replica: Uuid,
    deliveries: &[(Id, Uuid, bool)],
) -> QueryResult<()> {
    sql_query(
        "INSERT INTO deliveries (namespace_id, connection_id, id, create_time, update_time, manager_id, scan_id, \
             state, leased_by, next_attempt_time) \
         SELECT $1, connection_id, id, create_time, clock_timestamp(), $2, $3, \
             CASE WHEN leased THEN 'IN_FLIGHT' ELSE 'PENDING' END, CASE WHEN leased THEN $4 END, \
             CASE WHEN NOT leased THEN clock_timestamp() END \
         FROM unnest($5, $6, $7, $8) AS d (connection_id, id, create_time, leased)",
    )
    .bind::<SqlUuid, _>(scan.namespace.to_uuid())
    .bind::<SqlUuid, _>(scan.manager.to_uuid())
    .bind::<SqlUuid, _>(scan.scan.to_uuid())
    .bind::<SqlUuid, _>(replica)
    .bind::<Array<SqlUuid>, _>(deliveries.iter().map(|(_, connection, _)| *connection).collect::<Vec<_>>())
    .bind::<Array<SqlUuid>, _>(deliveries.iter().map(|(id, _, _)| id.to_uuid()).collect::<Vec<_>>())
    .bind::<Array<Timestamptz>, _>(deliveries.iter().map(|(id, _, _)| time_of(*id)).collect::<Vec<_>>())
    .bind::<Array<Bool>, _>(deliveries.iter().map(|(_, _, leased)| *leased).collect::<Vec<_>>())
    .execute(conn)
    .await?;
    Ok(())
}
