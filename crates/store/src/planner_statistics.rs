//! Statistics of the planner of PostgreSQL, kept near to the size of tables that grow fast.

use diesel::{
    QueryableByName,
    sql_types::{Nullable, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use crate::{QueryResult, prepared::query};

/// Analyzes one table that has grown fivefold since it was last analyzed, the largest first, and returns its name;
/// `None` without such a table. Reads the catalogue and the size of each table.
pub async fn analyze_grown(conn: &mut AsyncPgConnection) -> QueryResult<Option<String>> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = Nullable<Text>)]
        name: Option<String>,
    }
    let row: Row = query!("planner_statistics/analyze_grown")
        .get_result(conn)
        .await?;
    Ok(row.name)
}
