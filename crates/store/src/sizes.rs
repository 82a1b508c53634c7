//! How much of the disk each table uses.

use diesel::{
    QueryableByName, sql_query,
    sql_types::{BigInt, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use crate::QueryResult;

/// A table with its indexes, long values and partitions.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub struct TableSize {
    #[diesel(sql_type = Text)]
    pub table: String,
    #[diesel(sql_type = BigInt)]
    pub bytes: i64,
}

/// Returns the size of each table, by its name. Reads no rows: it asks the file system about some hundred files.
///
/// # Errors
/// If the database does not answer.
pub async fn by_table(conn: &mut AsyncPgConnection) -> QueryResult<Vec<TableSize>> {
    sql_query(
        "SELECT coalesce(parent.relname, own.relname)::text AS \"table\", \
             coalesce(sum(pg_total_relation_size(own.oid)), 0)::bigint AS bytes \
         FROM pg_class AS own LEFT JOIN pg_inherits AS i ON i.inhrelid = own.oid \
         LEFT JOIN pg_class AS parent ON parent.oid = i.inhparent \
         WHERE own.relkind = 'r' AND own.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'feeds'::regclass) \
         GROUP BY 1 ORDER BY 1",
    )
    .load(conn)
    .await
}
