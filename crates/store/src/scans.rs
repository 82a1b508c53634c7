//! Scans and their posts.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::{
    deserialize::{self, FromSql, FromSqlRow},
    pg::{Pg, PgValue},
    prelude::*,
    sql_types::{
        Array, BigInt, Bool, Double, Integer, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid,
    },
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    Id, ManagerName, Match, Place, Post, Scan, ScanName, Subforum, User, list::ListQuery,
};
use uuid::Uuid;

use crate::{
    Error, QueryResult,
    fair::Round,
    listing::{Listing, Page, Rows, column, no_other_index, nullable},
    prepared::query,
    words,
    work::table,
};

mod edit;
mod likes;
mod quota;
mod record;
#[cfg(test)]
mod tests;

pub use edit::{lock, update};
pub use likes::ALIKE_WITHIN;
pub(crate) use record::key_of;
pub use record::{NewScan, Origin, Recorded, ScanCounter, record, record_from};

#[derive(QueryableByName)]
#[diesel(check_for_backend(diesel::pg::Pg))]
pub(crate) struct PostRow {
    #[diesel(sql_type = diesel::sql_types::Text)]
    post_type: String,
    #[diesel(sql_type = diesel::sql_types::Timestamptz)]
    time: DateTime<Utc>,
    #[diesel(sql_type = diesel::sql_types::Text)]
    native_id: String,
    #[diesel(sql_type = diesel::sql_types::Nullable<diesel::sql_types::Text>)]
    title: Option<String>,
    #[diesel(sql_type = diesel::sql_types::Nullable<diesel::sql_types::Text>)]
    text: Option<String>,
    #[diesel(sql_type = diesel::sql_types::Text)]
    post_url: String,
    #[diesel(sql_type = diesel::sql_types::Nullable<diesel::sql_types::Text>)]
    subforum_id: Option<String>,
    #[diesel(sql_type = diesel::sql_types::Nullable<diesel::sql_types::Text>)]
    subforum_name: Option<String>,
    #[diesel(sql_type = diesel::sql_types::Nullable<diesel::sql_types::Text>)]
    subforum_url: Option<String>,
    #[diesel(sql_type = diesel::sql_types::Text)]
    user_id: String,
    #[diesel(sql_type = diesel::sql_types::Text)]
    user_name: String,
    #[diesel(sql_type = diesel::sql_types::Text)]
    user_url: String,
}

impl PostRow {
    pub(crate) fn into_post(self) -> Result<Post, Error> {
        let subforum = match (self.subforum_id, self.subforum_name, self.subforum_url) {
            (Some(id), Some(name), Some(url)) => Some(Subforum { id, name, url }),
            _ => None,
        };
        Ok(Post {
            post_type: words::parse(&self.post_type)?,
            time: self.time.into(),
            id: self.native_id,
            title: self.title,
            text: self.text,
            url: self.post_url,
            subforum,
            user: User {
                id: self.user_id,
                name: self.user_name,
                url: self.user_url,
            },
        })
    }
}

#[derive(QueryableByName)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct ScanRow {
    #[diesel(sql_type = SqlUuid)]
    namespace_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    manager_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = diesel::sql_types::Timestamptz)]
    create_time: DateTime<Utc>,
    #[diesel(sql_type = diesel::sql_types::Timestamptz)]
    update_time: DateTime<Utc>,
    #[diesel(sql_type = diesel::sql_types::Bool)]
    value: bool,
    #[diesel(sql_type = diesel::sql_types::Jsonb)]
    matched: Matched,
    #[diesel(sql_type = diesel::sql_types::Array<diesel::sql_types::Text>)]
    labels: Vec<String>,
    #[diesel(sql_type = Jsonb)]
    places: Places,
    #[diesel(embed)]
    post: PostRow,
}

/// Read as text, without building a JSON tree, because a page has many of them.
#[derive(Debug, FromSqlRow)]
struct Matched(Match);

#[derive(Debug, FromSqlRow)]
struct Places(Vec<Place>);

impl FromSql<Jsonb, Pg> for Matched {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        from_jsonb(&value).map(Self)
    }
}

impl FromSql<Jsonb, Pg> for Places {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        from_jsonb(&value).map(Self)
    }
}

fn from_jsonb<T: serde::de::DeserializeOwned>(value: &PgValue<'_>) -> deserialize::Result<T> {
    // The first byte is the version of the format.
    match value.as_bytes() {
        [1, json @ ..] => Ok(serde_json::from_slice(json)?),
        _ => Err("a jsonb of an unknown version".into()),
    }
}

impl ScanRow {
    fn into_scan(self) -> Result<Scan, Error> {
        Ok(Scan {
            name: ScanName {
                namespace: Id::from_uuid(self.namespace_id),
                manager: Id::from_uuid(self.manager_id),
                scan: Id::from_uuid(self.id),
            },
            create_time: self.create_time.into(),
            update_time: self.update_time.into(),
            post: self.post.into_post()?,
            value: self.value,
            labels: self.labels,
            matched: self.matched.0,
            places: self.places.0,
        })
    }
}

/// Requires that the Manager exists: the Scans of a deleted one are invisible until they are purged. Posts are looked up
/// one by one: the planner expects that a join of both columns finds next to nothing, and would read and sort all Scans
/// for one page.
const SELECT: &str = "SELECT s.namespace_id, s.manager_id, s.id, s.create_time, s.update_time, s.value, s.matched, \
         s.labels, s.places, p.type AS post_type, p.time, p.post_id AS native_id, p.title, p.text, p.url AS post_url, \
         p.subforum_id, p.subforum_name, p.subforum_url, p.user_id, p.user_name, p.user_url \
     FROM scans AS s CROSS JOIN LATERAL ( \
         SELECT * FROM posts WHERE receive_time = s.post_receive_time AND id = s.post_id LIMIT 1 \
     ) AS p WHERE s.namespace_id = $1 AND s.manager_id = $2 \
         AND EXISTS (SELECT FROM managers WHERE namespace_id = $1 AND id = $2)";

/// Same as [`SELECT`], for a Namespace of one account.
const SELECT_OWN: &str = "SELECT s.namespace_id, s.manager_id, s.id, s.create_time, s.update_time, s.value, s.matched, \
         s.labels, s.places, p.type AS post_type, p.time, p.post_id AS native_id, p.title, p.text, p.url AS post_url, \
         p.subforum_id, p.subforum_name, p.subforum_url, p.user_id, p.user_name, p.user_url \
     FROM scans AS s CROSS JOIN LATERAL ( \
         SELECT * FROM posts WHERE receive_time = s.post_receive_time AND id = s.post_id LIMIT 1 \
     ) AS p WHERE s.namespace_id = $1 AND s.manager_id = $2 \
         AND EXISTS (SELECT FROM managers WHERE namespace_id = $1 AND id = $2) \
         AND (SELECT account_id FROM namespaces WHERE id = $1) = $3";

/// Selects all existing Managers.
const SELECT_ALL: &str = "SELECT s.namespace_id, s.manager_id, s.id, s.create_time, s.update_time, s.value, s.matched, \
         s.labels, s.places, p.type AS post_type, p.time, p.post_id AS native_id, p.title, p.text, p.url AS post_url, \
         p.subforum_id, p.subforum_name, p.subforum_url, p.user_id, p.user_name, p.user_url \
     FROM scans AS s CROSS JOIN LATERAL ( \
         SELECT * FROM posts WHERE receive_time = s.post_receive_time AND id = s.post_id LIMIT 1 \
     ) AS p WHERE s.namespace_id = $1 AND EXISTS ( \
         SELECT FROM managers AS m WHERE m.namespace_id = s.namespace_id AND m.id = s.manager_id)";

/// Positions of those Scans that meet their filter, of the Scans that `$1` to `$4` give by key, with the number of
/// the filter in `$5`. The condition is to follow, a `CASE` with one branch for each filter.
pub(crate) const SELECT_GIVEN: &str = "SELECT given.position \
     FROM unnest($1, $2, $3, $4, $5) WITH ORDINALITY \
         AS given (namespace_id, manager_id, create_time, id, filter, position) \
     CROSS JOIN LATERAL ( \
         SELECT * FROM scans WHERE namespace_id = given.namespace_id AND manager_id = given.manager_id \
             AND create_time = given.create_time AND id = given.id LIMIT 1 \
     ) AS s CROSS JOIN LATERAL ( \
         SELECT * FROM posts WHERE receive_time = s.post_receive_time AND id = s.post_id LIMIT 1 \
     ) AS p WHERE CASE given.filter";

/// Returns a Scan. By primary key, because the id contains the time of its partition.
pub async fn get(conn: &mut AsyncPgConnection, name: ScanName) -> Result<Option<Scan>, Error> {
    query!(
        "scans/get",
        SqlUuid: name.namespace.to_uuid(),
        SqlUuid: name.manager.to_uuid(),
        Timestamptz: name.scan.time().to_chrono(),
        SqlUuid: name.scan.to_uuid(),
    )
    .get_result::<ScanRow>(conn)
    .await
    .optional()?
    .map(ScanRow::into_scan)
    .transpose()
}

/// Part of a Scan that a mail shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Excerpt {
    pub name: ScanName,
    /// Without ids, and with a part of long texts.
    pub post: Post,
    /// Without spans, and with the strongest terms alone.
    pub matched: Match,
}

/// Returns excerpts of those of the Scans that still exist, with at most `max_chars` of a title and of a text. By primary
/// key, because each id contains the time of its partition.
pub async fn excerpts(
    conn: &mut AsyncPgConnection,
    names: &[ScanName],
    max_chars: i32,
) -> Result<Vec<Excerpt>, Error> {
    #[derive(QueryableByName)]
    #[diesel(check_for_backend(diesel::pg::Pg))]
    struct Row {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        manager_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        id: Uuid,
        #[diesel(sql_type = Jsonb)]
        matched: Matched,
        #[diesel(embed)]
        post: PostRow,
    }
    let column = |id: fn(&ScanName) -> Id| -> Vec<Uuid> {
        names.iter().map(|name| id(name).to_uuid()).collect()
    };
    let times: Vec<DateTime<Utc>> = { names.iter() }
        .map(|name| name.scan.time().to_chrono())
        .collect();
    let rows: Vec<Row> = query!(
        "scans/excerpts",
        Array<SqlUuid>: column(|name| name.namespace),
        Array<SqlUuid>: column(|name| name.manager),
        Array<Timestamptz>: times,
        Array<SqlUuid>: column(|name| name.scan),
        Integer: max_chars,
    )
    .load(conn)
    .await?;
    let excerpts = rows.into_iter().map(|row| {
        Ok(Excerpt {
            name: ScanName {
                namespace: Id::from_uuid(row.namespace_id),
                manager: Id::from_uuid(row.manager_id),
                scan: Id::from_uuid(row.id),
            },
            post: row.post.into_post()?,
            matched: row.matched.0,
        })
    });
    excerpts.collect()
}

pub(crate) const LISTING: Listing = Listing {
    select: SELECT,
    rows: "SELECT FROM scans AS s WHERE s.namespace_id = $1 AND s.manager_id = $2",
    columns: &[
        column(
            "name",
            "('namespaces/' || ulid(s.namespace_id) || '/managers/' || ulid(s.manager_id) || '/scans/' || ulid(s.id))",
        )
        .taking(90),
        column("createTime", "s.create_time"),
        column("updateTime", "s.update_time"),
        column("value", "s.value"),
        column("labels", "array_to_string(s.labels, E'\\n')"),
        column("post.type", "p.type"),
        column("post.time", "p.time"),
        column("post.id", "p.post_id"),
        nullable("post.title", "p.title"),
        nullable("post.text", "p.text").taking(30),
        column("post.url", "p.url"),
        nullable("post.subforum.id", "p.subforum_id"),
        nullable("post.subforum.name", "p.subforum_name"),
        nullable("post.subforum.url", "p.subforum_url"),
        column("post.user.id", "p.user_id"),
        column("post.user.name", "p.user_name"),
        column("post.user.url", "p.user_url"),
        column("match.score", "(s.matched ->> 'score')::float8"),
        nullable("match.focus", "(s.matched ->> 'focus')"),
        nullable("match.judged", "(s.matched ->> 'judged')::boolean"),
        nullable("match.reader", "(s.matched ->> 'reader')"),
    ],
    id: "s.id",
    is_indexed: no_other_index,
};

/// Lists the Scans of a Manager. `scans_pkey` serves the orders by `createTime`.
pub async fn list(
    conn: &mut AsyncPgConnection,
    manager: ManagerName,
    list: &ListQuery,
) -> Result<Page<Scan>, Error> {
    let query = LISTING.page(&parents(manager), list);
    page(query.read(conn, list).await?, list)
}

/// Same as [`list`], for a Namespace that belongs to `account`. For a Namespace of another account the page is
/// empty and nothing is read, so that the response time reveals nothing.
pub async fn list_of_account(
    conn: &mut AsyncPgConnection,
    account: Id,
    manager: ManagerName,
    list: &ListQuery,
) -> Result<Page<Scan>, Error> {
    let [namespace, id] = parents(manager);
    let parents = [namespace, id, account.to_uuid()];
    let query = OWN_LISTING.page(&parents, list);
    page(query.read(conn, list).await?, list)
}

/// Maximum cost of [`list`].
pub async fn cost(
    conn: &mut AsyncPgConnection,
    manager: ManagerName,
    list: &ListQuery,
) -> QueryResult<u64> {
    LISTING.cost(conn, &parents(manager), list, "").await
}

fn parents(manager: ManagerName) -> [Uuid; 2] {
    [manager.namespace.to_uuid(), manager.manager.to_uuid()]
}

const OWN_LISTING: Listing = Listing {
    select: SELECT_OWN,
    ..LISTING
};

const ALL_LISTING: Listing = Listing {
    select: SELECT_ALL,
    rows: "SELECT FROM scans AS s WHERE s.namespace_id = $1",
    ..LISTING
};

/// Returns the Scans of all Managers of a Namespace. `scans_namespace_idx` serves the orders by `createTime`. Scans
/// of recently deleted Managers are skipped until they are purged.
pub async fn list_all(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    list: &ListQuery,
) -> Result<Page<Scan>, Error> {
    let query = ALL_LISTING.page(&[namespace.to_uuid()], list);
    page(query.read(conn, list).await?, list)
}

/// Maximum cost of [`list_all`].
pub async fn cost_of_all(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    list: &ListQuery,
) -> QueryResult<u64> {
    let parents = [namespace.to_uuid()];
    ALL_LISTING.cost(conn, &parents, list, "").await
}

fn page(read: Rows<ScanRow>, list: &ListQuery) -> Result<Page<Scan>, Error> {
    let items = read
        .rows
        .into_iter()
        .map(|row| Ok((Id::from_uuid(row.id), row.into_scan()?)))
        .collect::<Result<_, Error>>()?;
    Ok(Page::of_times(list, items, read.more, |scan: &Scan| {
        scan.create_time
    }))
}

/// Returns true if at least `count` Scans have no deliveries yet. Served by `scans_not_fanned_out_idx`.
pub async fn are_queued(conn: &mut AsyncPgConnection, count: u32) -> QueryResult<bool> {
    let found = query!("scans/are_queued", BigInt: i64::from(count))
        .execute(conn)
        .await?;
    Ok(found >= count as usize)
}

/// Kind of the leases of [`overdue`].
pub const FAN_OUT: &str = "fan_out";

/// Selects overdue Scans without deliveries, for a replica that looks for them.
#[derive(Debug)]
pub struct Overdue<'a> {
    /// The shortest age: the event may still come.
    pub age: Duration,
    /// Scans that are left out.
    pub except: &'a [ScanName],
    pub replica: Uuid,
    /// True if leases of silent replicas may be taken over.
    pub take_over: bool,
}

/// Locks up to `limit` Scans that are overdue and have no deliveries yet, oldest first: their events may be lost.
/// Includes Scans with times in the future: the database's clock went back, and a Manager's times only ascend. Leaves
/// out those of accounts that had a turn in this round, those that are leased or set aside, and those that another
/// transaction has locked, so that dispatchers share the work. The accounts of the locked Scans get their turn. Both
/// times are the database's. Call in the transaction that leases them. Served by `scans_not_fanned_out_idx`, and the
/// primary key of `leases`.
pub async fn overdue(
    conn: &mut AsyncPgConnection,
    overdue: &Overdue<'_>,
    round: &mut Round,
    limit: u32,
) -> QueryResult<Vec<table::Due<ScanName>>> {
    #[derive(QueryableByName)]
    struct Lost {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        manager_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        id: Uuid,
        #[diesel(sql_type = Nullable<SqlUuid>)]
        account_id: Option<Uuid>,
    }
    let except: Vec<Uuid> = { overdue.except.iter() }
        .map(|scan| scan.scan.to_uuid())
        .collect();
    let served: Vec<Uuid> = round.served().map(Id::to_uuid).collect();
    let lost: Vec<Lost> = query!(
        "scans/overdue",
        Double: overdue.age.as_secs_f64(),
        Array<SqlUuid>: except,
        Array<SqlUuid>: served,
        Text: FAN_OUT,
        SqlUuid: overdue.replica,
        Bool: overdue.take_over,
        BigInt: i64::from(limit),
    )
    .load(conn)
    .await?;
    for account in lost.iter().filter_map(|scan| scan.account_id) {
        round.serve(Id::from_uuid(account));
    }
    let due = lost.into_iter().map(|scan| table::Due {
        key: scan.id.to_string(),
        accounts: vec![scan.account_id.map_or(Id::NIL, Id::from_uuid)],
        item: ScanName {
            namespace: Id::from_uuid(scan.namespace_id),
            manager: Id::from_uuid(scan.manager_id),
            scan: Id::from_uuid(scan.id),
        },
    });
    Ok(due.collect())
}
