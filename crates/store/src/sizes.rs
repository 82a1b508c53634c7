//! How much of the disk each table uses.

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use crate::{QueryResult, prepared::query};

/// A table with its indexes, long values and partitions.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub struct TableSize {
    #[diesel(sql_type = Text)]
    pub table: String,
    #[diesel(sql_type = BigInt)]
    pub bytes: i64,
}

/// Returns the size of each table, by its name. Reads no rows: it asks the file system about some hundred files.
pub async fn by_table(conn: &mut AsyncPgConnection) -> QueryResult<Vec<TableSize>> {
    query!("sizes/by_table").load(conn).await
}
