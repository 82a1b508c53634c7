//! Rights of the services' own roles in PostgreSQL.
//!
//! An operator may give each service a login role, `earshot_api_gateway`, `earshot_manager_compiler`,
//! `earshot_scanner` or `earshot_webhook_dispatcher`. [`grant`] gives each of them that exists what its service needs.
//! A compromised scanner can then neither create API keys nor read the sealed secrets of Connections. Tables belong
//! to the role that migrates; services create and drop partitions through functions that run as this owner.

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, Text},
};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};

use crate::{QueryError, QueryResult};

const ALL: &str = "SELECT, INSERT, UPDATE, DELETE";

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
    #[must_use]
    pub fn role(self) -> &'static str {
        match self {
            Self::Gateway => "earshot_api_gateway",
            Self::Compiler => "earshot_manager_compiler",
            Self::Scanner => "earshot_scanner",
            Self::Dispatcher => "earshot_webhook_dispatcher",
        }
    }

    /// Privileges on a table; empty for none. A table that is not named here is open to all services.
    fn privileges(self, table: &str) -> &'static str {
        match (table, self) {
            ("__diesel_schema_migrations", _) => "SELECT",
            // Locking a row requires the right to update one column; this one is never updated.
            ("accounts", _) => "SELECT, UPDATE (create_time)",
            ("api_keys", Self::Gateway) => "SELECT, UPDATE (last_use_time)",
            (
                "rate_ledgers" | "account_rate_ledgers" | "idempotency_keys" | "idempotency_days",
                Self::Gateway,
            ) => ALL,
            (
                "api_keys"
                | "rate_ledgers"
                | "account_rate_ledgers"
                | "idempotency_keys"
                | "idempotency_days",
                _,
            ) => "",
            ("account_days", Self::Scanner) => ALL,
            ("account_days", Self::Gateway) => "SELECT",
            ("account_days", _) => "",
            // Recorded events cannot be changed, and only retention removes them.
            ("audit_events", Self::Gateway) => "SELECT, INSERT",
            ("audit_events", Self::Dispatcher) => "SELECT, DELETE",
            ("audit_events", _) => "",
            ("feed_days" | "feed_gaps" | "feed_missing_ids" | "feed_post_ids", Self::Scanner) => {
                ALL
            }
            ("feed_days" | "feed_gaps" | "feed_missing_ids", Self::Gateway) => "SELECT",
            ("feed_days" | "feed_gaps" | "feed_missing_ids" | "feed_post_ids", _) => "",
            ("connections" | "namespaces", Self::Gateway) => ALL,
            ("connections", Self::Dispatcher) => "SELECT, UPDATE",
            ("connections", _) => "SELECT (namespace_id, id, state)",
            ("namespaces", _) => "SELECT, UPDATE (update_time)",
            _ => ALL,
        }
    }
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
            if *service == Service::Dispatcher {
                statements.push(format!(
                    "GRANT EXECUTE ON FUNCTION drop_partition(text, text) TO {role}"
                ));
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
