//! Audit events: written in the transaction of the change, read by account.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName,
    sql_types::{Array, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    AuditEvent, Id,
    audit::{Actor, ActorType, AuditEventName, Entry},
    list::ListQuery,
};
use uuid::Uuid;

use crate::{
    Error, QueryResult,
    listing::{Listing, Page, Rows, column, no_other_index, nullable},
    prepared::query,
    schema::audit_events,
    words,
};

/// Minimum time between two records of the same key reading the secrets of the same resource from the same address.
const READ_AGAIN: Duration = Duration::from_secs(3_600);

/// The caller of a change, and its IP address.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    pub account: Id,
    pub actor: &'a Actor,
    /// Text of an IP address.
    pub client_address: Option<&'a str>,
    pub request_id: Option<&'a str>,
}

/// Writes an entry of the audit log. Call it in the transaction of the change. `audit_events_reads_idx` serves the
/// search for earlier reads of secrets.
pub async fn record(
    conn: &mut AsyncPgConnection,
    origin: Origin<'_>,
    entry: &Entry,
) -> QueryResult<()> {
    let id = Id::generate();
    query!(
        "audit/record",
        SqlUuid: origin.account.to_uuid(),
        Nullable<SqlUuid>: entry.namespace.map(Id::to_uuid),
        SqlUuid: id.to_uuid(),
        Timestamptz: id.time().to_chrono(),
        Text: entry.action.as_str(),
        Text: &entry.resource,
        Array<Text>: &entry.fields,
        Text: origin.actor.r#type.as_str(),
        Nullable<SqlUuid>: origin.actor.key.map(Id::to_uuid),
        Nullable<Text>: origin.client_address,
        Nullable<Text>: origin.request_id,
        Timestamptz: id.time().minus(READ_AGAIN).to_chrono(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Same as [`record`], for what an operator changes with `earshot`.
pub async fn record_of_operator(
    conn: &mut AsyncPgConnection,
    account: Id,
    entry: &Entry,
) -> QueryResult<()> {
    let actor = Actor {
        r#type: ActorType::Operator,
        key: None,
    };
    let origin = Origin {
        account,
        actor: &actor,
        client_address: None,
        request_id: None,
    };
    record(conn, origin, entry).await
}

#[derive(QueryableByName)]
#[diesel(table_name = audit_events)]
struct AuditEventRow {
    namespace_id: Option<Uuid>,
    id: Uuid,
    create_time: DateTime<Utc>,
    action: String,
    resource: String,
    fields: Vec<String>,
    actor_type: String,
    key_id: Option<Uuid>,
    client_address: Option<String>,
    request_id: Option<String>,
}

impl AuditEventRow {
    fn into_event(self) -> Result<AuditEvent, Error> {
        Ok(AuditEvent {
            name: AuditEventName {
                namespace: self.namespace_id.map(Id::from_uuid),
                event: Id::from_uuid(self.id),
            },
            create_time: self.create_time.into(),
            action: words::parse(&self.action)?,
            resource: self.resource,
            fields: self.fields,
            actor: Actor {
                r#type: words::parse(&self.actor_type)?,
                key: self.key_id.map(Id::from_uuid),
            },
            client_address: self.client_address,
            request_id: self.request_id,
        })
    }
}

pub(crate) const LISTING: Listing = Listing {
    select: "SELECT namespace_id, id, create_time, action, resource, fields, actor_type, key_id, client_address, \
         request_id FROM audit_events WHERE account_id = $1 AND namespace_id = $2",
    rows: "SELECT FROM audit_events WHERE account_id = $1 AND namespace_id = $2",
    columns: &[
        column(
            "name",
            "('namespaces/' || coalesce(ulid(namespace_id), '-') || '/auditEvents/' || ulid(id))",
        )
        .taking(60),
        column("createTime", "create_time"),
        column("action", "action"),
        column("resource", "resource"),
        column("fields", "array_to_string(fields, E'\\n')"),
        column("actor.type", "actor_type"),
        nullable("actor.key", "ulid(key_id)").taking(30),
        nullable("clientAddress", "client_address"),
        nullable("requestId", "request_id"),
    ],
    id: "id",
    is_indexed: no_other_index,
};

/// Events of all Namespaces of an account, including deleted ones, and of the account itself.
pub(crate) const LISTING_OF_ACCOUNT: Listing = Listing {
    select: "SELECT namespace_id, id, create_time, action, resource, fields, actor_type, key_id, client_address, \
         request_id FROM audit_events WHERE account_id = $1",
    rows: "SELECT FROM audit_events WHERE account_id = $1",
    ..LISTING
};

/// The Namespaces whose events are listed.
#[derive(Debug, Clone, Copy)]
pub struct Scope {
    pub account: Id,
    /// `None` for all events of the account.
    pub namespace: Option<Id>,
}

impl Scope {
    fn listing(self) -> (Listing, Vec<Uuid>) {
        let account = self.account.to_uuid();
        match self.namespace {
            Some(namespace) => (LISTING, vec![account, namespace.to_uuid()]),
            None => (LISTING_OF_ACCOUNT, vec![account]),
        }
    }
}

/// Lists the events of a scope. `audit_events_namespace_idx` and `audit_events_list_idx` serve the default order.
pub async fn list(
    conn: &mut AsyncPgConnection,
    scope: Scope,
    list: &ListQuery,
) -> Result<Page<AuditEvent>, Error> {
    let (listing, parents) = scope.listing();
    let Rows::<AuditEventRow> { rows, more } =
        listing.page(&parents, list).read(conn, list).await?;
    let items = rows
        .into_iter()
        .map(|row| Ok((Id::from_uuid(row.id), row.into_event()?)))
        .collect::<Result<_, Error>>()?;
    Ok(Page::new(list, items, more))
}

/// Maximum cost of [`list`].
pub async fn cost(
    conn: &mut AsyncPgConnection,
    scope: Scope,
    list: &ListQuery,
) -> QueryResult<u64> {
    let (listing, parents) = scope.listing();
    listing.cost(conn, &parents, list, "").await
}
