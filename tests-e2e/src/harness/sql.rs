//! SQL on a database that running services use.

use private_servers::Postgres;
use tokio::task::block_in_place;

/// Returns the output of `sql`, which must succeed.
pub(crate) fn query(postgres: &Postgres, sql: &str) -> String {
    let answer = block_in_place(|| query_past_deadlocks(postgres, sql));
    answer.unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the output of `sql`. It can meet the transactions of the services in either order, so it is repeated if
/// PostgreSQL ended it to resolve a deadlock.
pub(crate) fn query_past_deadlocks(postgres: &Postgres, sql: &str) -> Result<String, String> {
    loop {
        match postgres.query(sql) {
            Ok(output) => return Ok(output),
            Err(error) => {
                let error = format!("{error:#}");
                if !error.contains("deadlock detected") {
                    return Err(error);
                }
            }
        }
    }
}
