//! Finds the Scans that do not meet the filter of a notice.
//!
//! PostgreSQL evaluates the filter, by the same SQL as for a list: a second implementation could differ from it.

use std::collections::{BTreeMap, BTreeSet};

use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ScanName, filter::Filter, list::SCAN_FIELDS};
use uuid::Uuid;

use crate::{QueryResult, prepared::query, scans};

/// Number of filters of an account after which its other Scans with filters are left for later transactions. A Scan has
/// at most ten.
const PER_ACCOUNT: usize = 80;
/// Number of Scans whose filters cannot exceed [`PER_ACCOUNT`].
const FEW: usize = 8;
/// Maximum number of filters in one statement.
const PER_STATEMENT: usize = 64;

/// A Scan of a notice with a filter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Filtered {
    pub(super) scan: ScanName,
    pub(super) filter: String,
}

#[derive(QueryableByName)]
struct Found {
    #[diesel(sql_type = BigInt)]
    position: i64,
}

/// Returns the Scans with filters that exceed their account's share of one transaction, so that no account's filters
/// delay the Scans of another for long. Few Scans cost no statement.
pub(super) async fn surplus(
    conn: &mut AsyncPgConnection,
    scans: &BTreeSet<ScanName>,
) -> QueryResult<BTreeSet<ScanName>> {
    if scans.len() <= FEW {
        return Ok(BTreeSet::new());
    }
    let column = |value: fn(&ScanName) -> Uuid| -> Vec<Uuid> { scans.iter().map(value).collect() };
    let found: Vec<Found> = query!(
        "deliveries/find_surplus",
        Array<SqlUuid>: column(|scan| scan.namespace.to_uuid()),
        Array<SqlUuid>: column(|scan| scan.manager.to_uuid()),
        Array<SqlUuid>: column(|scan| scan.scan.to_uuid()),
        BigInt: i64::try_from(PER_ACCOUNT).unwrap_or(i64::MAX),
    )
    .load(conn)
    .await?;
    let scans: Vec<&ScanName> = scans.iter().collect();
    let surplus = found.iter().filter_map(|one| at(&scans, one.position));
    Ok(surplus.map(|scan| **scan).collect())
}

/// Returns those of `filtered` whose Scan does not meet the filter. One statement for many Scans and filters.
pub(super) async fn refused(
    conn: &mut AsyncPgConnection,
    filtered: impl Iterator<Item = Filtered>,
) -> QueryResult<BTreeSet<Filtered>> {
    let filtered: BTreeSet<Filtered> = filtered.collect();
    let mut refused = BTreeSet::new();
    let texts: BTreeMap<&str, ScanName> = filtered
        .iter()
        .map(|one| (one.filter.as_str(), one.scan))
        .collect();
    let mut filters: Vec<(&str, Filter)> = Vec::new();
    for (text, scan) in texts {
        match Filter::parse(text, SCAN_FIELDS) {
            Ok(filter) => filters.push((text, filter)),
            // Only a later version can have stored such a filter. A Scan too many is better than one that is missed.
            Err(issues) => {
                tracing::error!(
                    manager.name = %scan.manager_name(),
                    "the filter of a notice cannot be read: {}",
                    issues.summary()
                );
            }
        }
    }
    for filters in filters.chunks(PER_STATEMENT) {
        let number = |one: &Filtered| filters.iter().position(|(text, _)| *text == one.filter);
        let (asked, given): (Vec<&Filtered>, Vec<(ScanName, usize)>) = filtered
            .iter()
            .filter_map(|one| Some((one, (one.scan, number(one)?))))
            .unzip();
        let filters: Vec<&Filter> = filters.iter().map(|(_, filter)| filter).collect();
        let query = scans::LISTING.meeting(scans::SELECT_GIVEN, &given, &filters);
        let met: Vec<Found> = query.load(conn).await?;
        let met: BTreeSet<&Filtered> = met
            .iter()
            .filter_map(|one| at(&asked, one.position).copied())
            .collect();
        refused.extend(asked.into_iter().filter(|one| !met.contains(one)).cloned());
    }
    Ok(refused)
}

/// Returns the item at a position that the database counts from one.
fn at<T>(items: &[T], position: i64) -> Option<&T> {
    items.get(usize::try_from(position).ok()?.checked_sub(1)?)
}
