//! Creates one delivery per Scan and Connection, exactly once, even if the event arrives several times.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName,
    sql_types::{Array, Bool, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, DeliveryName, Id, ScanName};
use uuid::Uuid;

use super::{
    Age, EndpointRow, Opening, Subject, Task,
    notice_filters::{self, Filtered},
    posts, time_of,
};
use crate::{QueryResult, lanes::Due, prepared::query, seal::Sealer};

#[derive(QueryableByName)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct NewDelivery {
    #[diesel(sql_type = SqlUuid)]
    namespace_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    manager_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    scan_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    connection_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    account_id: Uuid,
    #[diesel(sql_type = Bool)]
    clear: bool,
    #[diesel(sql_type = Bool)]
    due: bool,
    #[diesel(sql_type = Bool)]
    restrained: bool,
    #[diesel(sql_type = Bool)]
    erased: bool,
    #[diesel(sql_type = Bool)]
    is_gathered: bool,
    #[diesel(sql_type = Nullable<Text>)]
    filter: Option<String>,
    #[diesel(sql_type = SqlUuid)]
    post_id: Uuid,
    #[diesel(sql_type = Timestamptz)]
    post_receive_time: DateTime<Utc>,
    #[diesel(sql_type = Integer)]
    post_bytes: i32,
    #[diesel(embed)]
    endpoint: EndpointRow,
}

impl NewDelivery {
    fn scan(&self) -> ScanName {
        ScanName {
            namespace: Id::from_uuid(self.namespace_id),
            manager: Id::from_uuid(self.manager_id),
            scan: Id::from_uuid(self.scan_id),
        }
    }

    fn connection(&self) -> ConnectionName {
        ConnectionName {
            namespace: Id::from_uuid(self.namespace_id),
            connection: Id::from_uuid(self.connection_id),
        }
    }

    fn filtered(&self) -> Option<Filtered> {
        let filter = self.filter.clone()?;
        Some(Filtered {
            scan: self.scan(),
            filter,
        })
    }
}

/// A recorded Scan, with its traceparent if it is traced.
#[derive(Debug, Clone)]
pub struct Made {
    pub scan: ScanName,
    pub traceparent: Option<String>,
}

impl From<&ScanName> for Made {
    fn from(scan: &ScanName) -> Self {
        Self {
            scan: *scan,
            traceparent: None,
        }
    }
}

impl From<&Made> for Made {
    fn from(made: &Made) -> Self {
        made.clone()
    }
}

/// Result of creating the deliveries of some Scans.
#[derive(Debug)]
pub struct FannedOut<P> {
    /// Leased deliveries that can be sent without another read of the database, each with its permit.
    pub tasks: Vec<(Task, P)>,
    /// Connections with waiting deliveries in the database, for [`crate::lanes::mark_due`] after the commit. Leaves out
    /// Connections that are disabled or whose circuit breaker is open: they become due when that ends.
    pub waiting: BTreeSet<Due>,
    /// Scans that were not marked, because the notices of their account have too many filters for one transaction.
    pub surplus: BTreeSet<ScanName>,
}

/// Inserts the deliveries of Scans, one per Connection in the Manager's current notices whose filter the Scan meets,
/// and marks the Scans. For a Connection with digests, the Scan is gathered instead ([`crate::digests`]).
/// Deliveries that get a permit from `admit` are leased to `replica`; it is given the Connection, its account and
/// [`Task::post_bytes`]. `admit` is called only if the Connection is
/// enabled, its circuit breaker is closed, it has no rate limit, and nothing waits for it in the database. The
/// other deliveries wait. Those of a post that was deleted at its source meanwhile are cancelled. A Scan that was
/// marked before, or is gone, gets no deliveries.
///
/// Two statements for a few Scans, and three for many. One more reads the posts of leased deliveries, each once for
/// all of them. With filters there is one more, or several if there are many
/// filters; Scans of an account with filters beyond its share of a transaction are left for a later call. Call inside
/// a transaction of [`crate::keyed`], because they would otherwise be planned at each call. A Scan's row lock makes a
/// second caller wait, and then find the mark.
///
/// # Errors
/// If the database does not answer; then nothing is marked.
pub async fn fan_out<P>(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    scans: impl IntoIterator<Item = impl Into<Made>>,
    replica: Uuid,
    mut admit: impl FnMut(ConnectionName, Id, usize) -> Option<P>,
) -> QueryResult<FannedOut<P>> {
    let made = scans.into_iter().map(Into::into);
    let traces: BTreeMap<ScanName, Option<String>> = made
        .map(|made: Made| (made.scan, made.traceparent))
        .collect();
    let mut scans: BTreeSet<ScanName> = traces.keys().copied().collect();
    let surplus = notice_filters::surplus(conn, &scans).await?;
    scans.retain(|scan| !surplus.contains(scan));
    let column = |value: fn(&ScanName) -> Uuid| -> Vec<Uuid> { scans.iter().map(value).collect() };
    let times = scans.iter().map(|scan| time_of(scan.scan));
    let mut rows: Vec<NewDelivery> = query!(
        "deliveries/fan_out",
        Array<SqlUuid>: column(|scan| scan.namespace.to_uuid()),
        Array<SqlUuid>: column(|scan| scan.manager.to_uuid()),
        Array<Timestamptz>: times.collect::<Vec<_>>(),
        Array<SqlUuid>: column(|scan| scan.scan.to_uuid()),
    )
    .load(conn)
    .await?;

    let filtered = rows.iter().filter_map(NewDelivery::filtered);
    let refused = notice_filters::refused(conn, filtered).await?;
    rows.retain(|row| row.filtered().is_none_or(|one| !refused.contains(&one)));
    let (gathered, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.is_gathered);
    gather(conn, &gathered).await?;

    let mut found = FannedOut {
        tasks: Vec::new(),
        waiting: BTreeSet::new(),
        surplus,
    };
    // Only the posts of deliveries with a permit are read: the caller bounds their sizes.
    let admitted = |row: NewDelivery| {
        let bytes = usize::try_from(row.post_bytes).unwrap_or(0);
        let may_be_sent = row.clear && !row.erased;
        let permit =
            may_be_sent.then(|| admit(row.connection(), Id::from_uuid(row.account_id), bytes));
        (row, permit.flatten())
    };
    let rows: Vec<(NewDelivery, Option<P>)> = rows.into_iter().map(admitted).collect();
    let leased = rows.iter().filter(|(_, permit)| permit.is_some());
    let keys = leased.map(|(row, _)| (row.post_id, row.post_receive_time));
    let posts = posts::load(conn, keys.collect()).await?;

    let mut inserts: Vec<Insert> = Vec::with_capacity(rows.len());
    for (row, permit) in rows {
        let scan = row.scan();
        let connection = row.connection();
        let delivery = DeliveryName {
            namespace: connection.namespace,
            connection: connection.connection,
            delivery: Id::generate(),
        };
        // One Scan may have several deliveries.
        let traceparent = traces.get(&scan).cloned().flatten();
        let account = Id::from_uuid(row.account_id);
        // A delivery whose values cannot be read, for example without their key, waits in the database: it delays
        // neither the Scan's other Connections nor other events.
        let task = permit.and_then(|permit| {
            let opening = Opening {
                delivery,
                account,
                attempt_count: 0,
                schedule_base: 0,
                last_status_code: None,
                reopen_time: None,
                age: Age::new(delivery.delivery.time(), delivery.delivery.time()),
                urgent: false,
                traceparent: traceparent.clone(),
            };
            let post = posts.get(&row.post_id)?.clone();
            let subject = Subject::Scan { name: scan, post };
            let task = row.endpoint.task(opening, subject, sealer).ok()?;
            Some((task, permit))
        });
        inserts.push(Insert {
            delivery,
            scan,
            leased: task.is_some(),
            erased: row.erased,
            traceparent,
        });
        match task {
            Some(task) => found.tasks.push(task),
            None if row.due && !row.erased => {
                found.waiting.insert(Due {
                    connection,
                    account,
                    restrained: row.restrained,
                });
            }
            None => {}
        }
    }
    insert(conn, replica, &inserts).await?;
    Ok(found)
}

/// Keeps Scans for the next digests of their Connections.
async fn gather(conn: &mut AsyncPgConnection, rows: &[NewDelivery]) -> QueryResult<()> {
    let rows: Vec<&NewDelivery> = rows.iter().filter(|row| !row.erased).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let column = |value: fn(&NewDelivery) -> Uuid| -> Vec<Uuid> {
        rows.iter().map(|row| value(row)).collect()
    };
    query!(
        "digests/gather",
        Array<SqlUuid>: column(|row| row.namespace_id),
        Array<SqlUuid>: column(|row| row.connection_id),
        Array<SqlUuid>: column(|row| row.manager_id),
        Array<SqlUuid>: column(|row| row.scan_id),
    )
    .execute(conn)
    .await?;
    Ok(())
}

struct Insert {
    delivery: DeliveryName,
    scan: ScanName,
    leased: bool,
    erased: bool,
    traceparent: Option<String>,
}

/// Only the database's clock decides what is due. The time in the id is only a part of the key.
async fn insert(
    conn: &mut AsyncPgConnection,
    replica: Uuid,
    inserts: &[Insert],
) -> QueryResult<()> {
    if inserts.is_empty() {
        return Ok(());
    }
    let column = |value: fn(&Insert) -> Uuid| -> Vec<Uuid> { inserts.iter().map(value).collect() };
    let times = inserts.iter().map(|one| time_of(one.delivery.delivery));
    let traces = inserts.iter().map(|one| one.traceparent.as_deref());
    let flags = |flag: fn(&Insert) -> bool| -> Vec<bool> { inserts.iter().map(flag).collect() };
    query!(
        "deliveries/insert",
        SqlUuid: replica,
        Array<SqlUuid>: column(|one| one.delivery.namespace.to_uuid()),
        Array<SqlUuid>: column(|one| one.delivery.connection.to_uuid()),
        Array<SqlUuid>: column(|one| one.delivery.delivery.to_uuid()),
        Array<Timestamptz>: times.collect::<Vec<_>>(),
        Array<SqlUuid>: column(|one| one.scan.manager.to_uuid()),
        Array<SqlUuid>: column(|one| one.scan.scan.to_uuid()),
        Array<Bool>: flags(|one| one.leased),
        Array<Nullable<Text>>: traces.collect::<Vec<_>>(),
        Array<Bool>: flags(|one| one.erased),
    )
    .execute(conn)
    .await?;
    Ok(())
}
