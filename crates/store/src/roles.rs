//! Rights of the services' own roles in PostgreSQL.
//!
//! An operator may give each service a login role, `earshot_api_gateway`, `earshot_manager_compiler`,
//! `earshot_scanner` or `earshot_webhook_dispatcher`. [`grant`] gives each of them that exists what its service needs.
//! A compromised scanner can then neither create API keys, nor read the sealed secrets of Connections, nor change
//! Managers and where their Scans go. Tables belong to the role that migrates. Functions that run as this owner let
//! services create and drop partitions, and the gateway open and end the sessions of people who sign in.

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, Text},
};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};

use crate::{QueryError, QueryResult};

const NONE: &str = "";
const READ: &str = "SELECT";
const ALL: &str = "SELECT, INSERT, UPDATE, DELETE";
const ADD: &str = "SELECT, INSERT";
const CHANGE: &str = "SELECT, UPDATE";
const REMOVE: &str = "SELECT, DELETE";
const PUT: &str = "SELECT, INSERT, UPDATE";
const TAKE: &str = "SELECT, UPDATE, DELETE";
const REPLACE: &str = "SELECT, INSERT, DELETE";
/// Rights that a purge needs to cancel deliveries. Their Connection and Scan stay as they are.
const CANCEL: &str = "SELECT, DELETE, UPDATE (state, leased_by, next_attempt_time, update_time)";
/// Locking a row requires the right to update one column; these are never updated.
const LOCK_ACCOUNT: &str = "SELECT, UPDATE (create_time)";
const LOCK_NAMESPACE: &str = "SELECT, UPDATE (update_time)";
const CONNECTION_STATE: &str =
    "SELECT (namespace_id, id, state, events, digest, time_zone, update_time)";

/// Rights of the gateway, the compiler, the scanner and the dispatcher on each table. A table that is not here is
/// closed to all of them. Every service runs the purges of deleted resources, folds statistics and leases work.
/// Foreign keys need no privileges.
const PRIVILEGES: &[(&[&str], [&str; 4])] = &[
    (&["__diesel_schema_migrations"], [READ; 4]),
    (
        &[
            "replicas",
            "purges",
            "stats",
            "feed_stats",
            "stats_deltas",
            "leases",
        ],
        [ALL; 4],
    ),
    // Accounts and what they spend.
    (&["accounts"], [LOCK_ACCOUNT; 4]),
    (
        &["api_keys"],
        ["SELECT, UPDATE (last_use_time)", NONE, NONE, NONE],
    ),
    (
        &[
            "rate_ledgers",
            "account_rate_ledgers",
            "idempotency_keys",
            "idempotency_days",
            "sign_ins",
        ],
        [ALL, NONE, NONE, NONE],
    ),
    (&["account_days"], [READ, NONE, ALL, NONE]),
    (&["account_feeds"], [PUT, PUT, TAKE, NONE]),
    // Recorded events cannot be changed, and only retention removes them.
    (&["audit_events"], [ADD, NONE, NONE, REMOVE]),
    // What customers create.
    (
        &["namespaces"],
        [ALL, LOCK_NAMESPACE, LOCK_NAMESPACE, LOCK_NAMESPACE],
    ),
    (
        &["connections"],
        [ALL, CONNECTION_STATE, CONNECTION_STATE, CHANGE],
    ),
    (&["managers"], [ALL, CHANGE, READ, READ]),
    (&["manager_notices"], [ALL, READ, NONE, READ]),
    (&["manager_verdicts"], [ALL, ALL, NONE, NONE]),
    (&["plan_version"], [CHANGE, CHANGE, READ, NONE]),
    (&["plan_changes"], [REPLACE, REPLACE, READ, NONE]),
    // Feeds, and what is read from them.
    (&["feeds"], [PUT, PUT, TAKE, NONE]),
    (&["feed_watchers"], [ALL, ALL, READ, NONE]),
    (&["feed_days"], [READ, READ, ALL, NONE]),
    (
        &["feed_gaps", "feed_missing_ids", "recent_posts"],
        [READ, NONE, ALL, NONE],
    ),
    (
        &[
            "feed_post_ids",
            "quarantined_posts",
            "rechecks",
            "missing_posts",
            "look_backs",
        ],
        [NONE, NONE, ALL, NONE],
    ),
    (&["address_keys"], [NONE, NONE, READ, NONE]),
    (
        &["platform_budgets", "platform_budget_shares"],
        [NONE, PUT, PUT, NONE],
    ),
    (&["backfills"], [PUT, PUT, ALL, NONE]),
    // Scans and their posts.
    (&["posts"], [READ, READ, PUT, READ]),
    (&["post_keys"], [NONE, NONE, REPLACE, REMOVE]),
    (&["scan_clocks"], [PUT, READ, CHANGE, NONE]),
    (&["scans"], [TAKE, REMOVE, ALL, TAKE]),
    (
        &["scan_keys", "scan_likes", "refused_posts"],
        [REMOVE, REMOVE, ALL, REMOVE],
    ),
    // Deliveries.
    (&["deliveries"], [TAKE, CANCEL, CANCEL, ALL]),
    (&["delivery_attempts"], [REMOVE, REMOVE, REMOVE, REPLACE]),
    (&["connection_lanes"], [PUT, NONE, NONE, PUT]),
    (&["connection_tests", "replays"], [ALL, NONE, NONE, ALL]),
    (&["service_events"], ["INSERT", "INSERT", ADD, ALL]),
    // E-mail.
    (&["mail_recipients"], [ALL, NONE, NONE, CHANGE]),
    (&["account_mail_addresses"], [ALL, NONE, NONE, ALL]),
    (
        &["mail_addresses", "mail_receipts"],
        [NONE, NONE, NONE, ALL],
    ),
    // Purges of Managers do not cancel digests.
    (&["digests"], [READ, READ, READ, ALL]),
    (&["digest_scans"], [REMOVE, REMOVE, REMOVE, ALL]),
];

/// A service that can have a separate role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    Gateway,
    Compiler,
    Scanner,
    Dispatcher,
}

impl Service {
    pub const EACH: [Self; 4] = [
        Self::Gateway,
        Self::Compiler,
        Self::Scanner,
        Self::Dispatcher,
    ];

    /// Name of the role in PostgreSQL.
    pub fn role(self) -> &'static str {
        match self {
            Self::Gateway => "earshot_api_gateway",
            Self::Compiler => "earshot_manager_compiler",
            Self::Scanner => "earshot_scanner",
            Self::Dispatcher => "earshot_webhook_dispatcher",
        }
    }

    /// Privileges on a table; empty for none.
    fn privileges(self, table: &str) -> &'static str {
        let row = PRIVILEGES
            .iter()
            .find(|(tables, _)| tables.contains(&table));
        row.map_or(
            NONE,
            |(_, [gateway, compiler, scanner, dispatcher])| match self {
                Self::Gateway => gateway,
                Self::Compiler => compiler,
                Self::Scanner => scanner,
                Self::Dispatcher => dispatcher,
            },
        )
    }
}

/// Returns true if it was decided what the services may do with a table.
pub fn is_decided(table: &str) -> bool {
    PRIVILEGES.iter().any(|(tables, _)| tables.contains(&table))
}

#[derive(QueryableByName)]
struct Name {
    #[diesel(sql_type = Text)]
    name: String,
}

/// Grants each existing service role its privileges and revokes all others. Returns the roles that it found. Only
/// the owner of the tables can run it; `earshot migrate` does.
///
/// # Errors
/// If the database does not answer or refuses.
pub async fn grant(conn: &mut AsyncPgConnection) -> QueryResult<Vec<&'static str>> {
    let names: Vec<&str> = Service::EACH.iter().map(|service| service.role()).collect();
    let found: Vec<Name> =
        sql_query("SELECT rolname::text AS name FROM pg_roles WHERE rolname = ANY ($1)")
            .bind::<Array<Text>, _>(names)
            .load(conn)
            .await?;
    let services: Vec<Service> = Service::EACH
        .into_iter()
        .filter(|service| found.iter().any(|row| row.name == service.role()))
        .collect();
    if services.is_empty() {
        return Ok(Vec::new());
    }
    let tables = owned(conn, "'r', 'p'").await?;
    let sequences = owned(conn, "'S'").await?;
    conn.transaction::<_, QueryError, _>(async |conn| {
        for service in &services {
            let role = service.role();
            let mut statements = Vec::new();
            for table in &tables {
                statements.push(format!("REVOKE ALL ON {table} FROM {role}"));
                let privileges = service.privileges(table.trim_matches('"'));
                if !privileges.is_empty() {
                    statements.push(format!("GRANT {privileges} ON {table} TO {role}"));
                }
            }
            for sequence in &sequences {
                statements.push(format!("GRANT USAGE ON SEQUENCE {sequence} TO {role}"));
            }
            let functions = match service {
                Service::Gateway => {
                    "open_session(uuid, uuid, bytea, text, text, text, interval), end_session(uuid), \
                     purge_sessions(interval, integer)"
                }
                Service::Dispatcher => "drop_partition(text, text), analyze_grown()",
                Service::Compiler | Service::Scanner => NONE,
            };
            if !functions.is_empty() {
                statements.push(format!("GRANT EXECUTE ON FUNCTION {functions} TO {role}"));
            }
            for statement in statements {
                sql_query(statement).execute(conn).await?;
            }
        }
        Ok(())
    })
    .await?;
    Ok(services.iter().map(|service| service.role()).collect())
}

/// Returns the quoted names of the relations of some kinds that the current role owns, without partitions, because
/// the privileges of their parents apply.
async fn owned(conn: &mut AsyncPgConnection, kinds: &str) -> QueryResult<Vec<String>> {
    let sql = format!(
        "SELECT quote_ident(relname) AS name FROM pg_class \
         WHERE relkind IN ({kinds}) AND NOT relispartition AND relnamespace = current_schema()::regnamespace \
         AND pg_has_role(relowner, 'MEMBER') ORDER BY relname"
    );
    let rows: Vec<Name> = sql_query(sql).load(conn).await?;
    Ok(rows.into_iter().map(|row| row.name).collect())
}
