//! Leases waiting deliveries: for each Connection as many as it has capacity for, the longest due first.

use std::{collections::HashMap, sync::Arc};

use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName, deserialize,
    pg::Pg,
    row::NamedRow,
    sql_types::{
        Array, BigInt, Bool, Integer, Jsonb, Nullable, SmallInt, Text, Timestamptz, Uuid as SqlUuid,
    },
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, DeliveryName, Id, ScanName};
use uuid::Uuid;

use super::{
    Age, Claimed, EndpointRow, Opening, Subject, Unsendable, orphans::cancel_erased, time_of,
};
use crate::{
    Error, QueryResult,
    fair::{Places, Round},
    lanes,
    prepared::query,
    scans::PostRow,
    seal::Sealer,
};

/// Maximum number of a Connection's requested deliveries that a replica holds at a time.
pub const MAX_URGENT: i64 = 2;

/// Number of a Connection's deliveries that may be leased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want {
    pub connection: ConnectionName,
    pub count: u32,
}

/// Leases due deliveries of these Connections to `replica`: up to each Connection's count, the longest due first.
/// Rows that another replica is about to lease are skipped. Nothing is leased for a Connection that is disabled,
/// has a rate limit, or has an open circuit breaker, even if the caller does not know that yet: its owner or
/// another replica may just have changed it. Deliveries of a deleted Manager are leased but not returned: its purge
/// or [`super::free_orphans`] cancels them. Deliveries of a post that was deleted at its source are cancelled at
/// once, and do not count as found.
///
/// One statement: one step of `deliveries_due_by_connection_idx` for each Connection, and then the rows that it
/// finds. The cost does not depend on how many deliveries wait.
pub async fn claim(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    replica: Uuid,
    wants: &[Want],
) -> QueryResult<Vec<Claimed>> {
    if wants.is_empty() {
        return Ok(Vec::new());
    }
    let [namespaces, ids] = lanes::keys(wants.iter().map(|want| want.connection));
    let rows: Vec<TaskRow> = query!(
        "deliveries/claim",
        SqlUuid: replica,
        Array<SqlUuid>: namespaces,
        Array<SqlUuid>: ids,
        Array<Integer>: counts(wants),
    )
    .load(conn)
    .await?;
    without_erased(conn, sealer, replica, rows).await
}

/// Same as [`claim`], for Connections whose lanes the transaction has locked. The caller knows what may be sent to
/// them.
pub async fn claim_locked(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    replica: Uuid,
    wants: &[Want],
) -> QueryResult<Vec<Claimed>> {
    if wants.is_empty() {
        return Ok(Vec::new());
    }
    let [namespaces, ids] = lanes::keys(wants.iter().map(|want| want.connection));
    let rows: Vec<TaskRow> = query!(
        "deliveries/claim_locked",
        SqlUuid: replica,
        Array<SqlUuid>: namespaces,
        Array<SqlUuid>: ids,
        Array<Integer>: counts(wants),
    )
    .load(conn)
    .await?;
    without_erased(conn, sealer, replica, rows).await
}

fn counts(wants: &[Want]) -> Vec<i32> {
    wants
        .iter()
        .map(|want| want.count.try_into().unwrap_or(i32::MAX))
        .collect()
}

/// Leases to `replica` deliveries that a person requested, even if their Connection has an open circuit breaker or a
/// rate limit, unless it is disabled. They ignore the limits of lanes, so the replica holds at most [`MAX_URGENT`] of
/// a Connection at a time, and `capacity` in total, which accounts share ([`crate::fair`]). `held` has an entry for
/// each one that it already holds. Leaves out the accounts that had a turn in this round; those that it finds get
/// theirs.
///
/// Served by `deliveries_urgent_idx`, which is mostly empty. Only the longest due are ranked, because a Connection may
/// have thousands; once it or its account has its share, a claim skips all of them and reaches the next. A delivery is
/// leased if the free capacity is enough for what its account would then hold and for all deliveries that are leased
/// before it.
pub async fn claim_urgent(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    replica: Uuid,
    capacity: u32,
    held: &[(ConnectionName, Id)],
    round: &mut Round,
) -> QueryResult<Vec<Claimed>> {
    let mut places = Places::new(usize::try_from(capacity).unwrap_or(usize::MAX));
    let mut counts: HashMap<Uuid, i64> = HashMap::new();
    for (connection, account) in held {
        places.take(*account);
        *counts.entry(connection.connection.to_uuid()).or_default() += 1;
    }
    if places.free() == 0 {
        return Ok(Vec::new());
    }
    let (full, partial): (Vec<_>, Vec<_>) = counts
        .into_iter()
        .partition(|(_, count)| *count >= MAX_URGENT);
    let full: Vec<Uuid> = full.into_iter().map(|(connection, _)| connection).collect();
    let (partial, counts): (Vec<Uuid>, Vec<i64>) = partial.into_iter().unzip();
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let refused = places.refused().chain(round.served());
    let refused: Vec<Uuid> = refused.map(|account| account.to_uuid()).collect();
    let (accounts, account_counts): (Vec<Uuid>, Vec<i64>) = places
        .holders()
        .map(|(account, count)| (account.to_uuid(), number(count)))
        .unzip();
    let rows: Vec<TaskRow> = query!(
        "deliveries/claim_urgent",
        SqlUuid: replica,
        Array<SqlUuid>: full,
        Array<SqlUuid>: refused,
        Array<SqlUuid>: partial,
        Array<BigInt>: counts,
        Array<SqlUuid>: accounts,
        Array<BigInt>: account_counts,
        BigInt: MAX_URGENT,
        BigInt: number(places.free()),
    )
    .load(conn)
    .await?;
    for row in &rows {
        round.serve(Id::from_uuid(row.account_id));
    }
    without_erased(conn, sealer, replica, rows).await
}

/// Cancels leased deliveries whose posts were erased, and returns the others. After a crash in between,
/// [`super::free_orphans`] cancels them.
async fn without_erased(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    replica: Uuid,
    rows: Vec<TaskRow>,
) -> QueryResult<Vec<Claimed>> {
    let (erased, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.erased);
    let erased: Vec<DeliveryName> = erased.iter().map(TaskRow::delivery).collect();
    cancel_erased(conn, replica, &erased).await?;
    Ok(rows.into_iter().map(|row| row.into_task(sealer)).collect())
}

#[derive(QueryableByName)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct TaskRow {
    #[diesel(sql_type = SqlUuid)]
    namespace_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    connection_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(embed)]
    subject: SubjectRow,
    #[diesel(sql_type = Integer)]
    attempt_count: i32,
    #[diesel(sql_type = Integer)]
    schedule_base: i32,
    #[diesel(sql_type = Nullable<SmallInt>)]
    last_status_code: Option<i16>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    reopen_time: Option<DateTime<Utc>>,
    #[diesel(sql_type = Bool)]
    urgent: bool,
    #[diesel(sql_type = Nullable<Text>)]
    traceparent: Option<String>,
    #[diesel(sql_type = SqlUuid)]
    account_id: Uuid,
    #[diesel(sql_type = Bool)]
    erased: bool,
    #[diesel(sql_type = Timestamptz)]
    now: DateTime<Utc>,
    #[diesel(embed)]
    endpoint: EndpointRow,
}

/// The subject of a delivery, whose columns depend on what it is.
enum SubjectRow {
    Scan {
        manager: Uuid,
        scan: Uuid,
        post: Box<PostRow>,
    },
    Event(serde_json::Value),
}

impl QueryableByName<Pg> for SubjectRow {
    fn build<'a>(row: &impl NamedRow<'a, Pg>) -> deserialize::Result<Self> {
        match NamedRow::get::<Nullable<Jsonb>, Option<serde_json::Value>>(row, "event")? {
            Some(event) => Ok(Self::Event(event)),
            None => Ok(Self::Scan {
                manager: NamedRow::get::<SqlUuid, Uuid>(row, "manager_id")?,
                scan: NamedRow::get::<SqlUuid, Uuid>(row, "scan_id")?,
                post: Box::new(<PostRow as QueryableByName<Pg>>::build(row)?),
            }),
        }
    }
}

impl SubjectRow {
    fn into_subject(self, namespace: Id) -> Result<Subject, Error> {
        Ok(match self {
            Self::Scan {
                manager,
                scan,
                post,
            } => Subject::Scan {
                name: ScanName {
                    namespace,
                    manager: Id::from_uuid(manager),
                    scan: Id::from_uuid(scan),
                },
                post: Arc::new(post.into_post()?),
            },
            Self::Event(event) => {
                Subject::Event(serde_json::from_value(event).map_err(Error::Json)?)
            }
        })
    }
}

impl TaskRow {
    fn delivery(&self) -> DeliveryName {
        DeliveryName {
            namespace: Id::from_uuid(self.namespace_id),
            connection: Id::from_uuid(self.connection_id),
            delivery: Id::from_uuid(self.id),
        }
    }

    fn into_task(self, sealer: &Sealer) -> Claimed {
        let delivery = self.delivery();
        let attempt_count = self.attempt_count.try_into().unwrap_or(0);
        let schedule_base = self.schedule_base.try_into().unwrap_or(0);
        let opened = self
            .reopen_time
            .unwrap_or_else(|| time_of(delivery.delivery));
        let begin = opened.max(self.endpoint.connection_update_time);
        let age = Age::new(begin.into(), self.now.into());
        let opening = Opening {
            delivery,
            account: Id::from_uuid(self.account_id),
            attempt_count,
            schedule_base,
            last_status_code: self.last_status_code.and_then(|code| code.try_into().ok()),
            reopen_time: self.reopen_time.map(Into::into),
            age,
            urgent: self.urgent,
            traceparent: self.traceparent,
        };
        let subject = self.subject.into_subject(delivery.namespace);
        let task = subject.and_then(|subject| self.endpoint.task(opening, subject, sealer));
        task.map_err(|error| {
            Box::new(Unsendable {
                delivery,
                attempt_count,
                schedule_base,
                age,
                error,
            })
        })
    }
}
