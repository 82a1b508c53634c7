//! Direct access to a test's database, in addition to the queries of `store`.

use diesel::{
    QueryableByName,
    result::Error,
    sql_query,
    sql_types::{BigInt, Nullable, Text},
};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use url::Url;

use crate::TestDatabase;

impl TestDatabase {
    /// Runs `sql` and returns the number of changed rows.
    ///
    /// # Panics
    /// If the database refuses it; the same holds for all functions below.
    pub async fn run(&self, sql: &str) -> usize {
        run_past_deadlocks(&mut self.connect().await, sql).await
    }

    /// Number of rows for the text after `FROM`.
    pub async fn count(&self, from: &str) -> i64 {
        #[derive(QueryableByName)]
        struct Count {
            #[diesel(sql_type = BigInt)]
            count: i64,
        }
        let mut conn = self.connect().await;
        sql_query(format!("SELECT count(*) AS count FROM {from}"))
            .get_result::<Count>(&mut conn)
            .await
            .unwrap_or_else(|error| panic!("`{from}`: {error}"))
            .count
    }

    /// The values of `expression` in the rows for the text after `FROM`, as text; NULL is empty.
    pub async fn texts(&self, expression: &str, from: &str) -> Vec<String> {
        #[derive(QueryableByName)]
        struct Value {
            #[diesel(sql_type = Nullable<Text>)]
            value: Option<String>,
        }
        let mut conn = self.connect().await;
        let values: Vec<Value> =
            sql_query(format!("SELECT ({expression})::text AS value FROM {from}"))
                .load(&mut conn)
                .await
                .unwrap_or_else(|error| panic!("`{expression}` of `{from}`: {error}"));
        values
            .into_iter()
            .map(|row| row.value.unwrap_or_default())
            .collect()
    }

    /// Runs `statements` in a transaction that stays open until the connection is dropped.
    pub async fn begin(&self, statements: &[&str]) -> AsyncPgConnection {
        let mut conn = self.connect().await;
        for sql in ["BEGIN"].iter().chain(statements) {
            run(&mut conn, sql).await;
        }
        conn
    }

    /// Makes the database's clock differ from the true time by the interval `ahead`, for connections
    /// that are opened after the first call.
    pub async fn skew_clock(&self, ahead: &str) {
        let mut conn = self.connect().await;
        run(&mut conn, "CREATE SCHEMA IF NOT EXISTS skewed").await;
        run(&mut conn, "GRANT USAGE ON SCHEMA skewed TO PUBLIC").await;
        for clock in ["clock_timestamp", "statement_timestamp"] {
            let sql = format!(
                "CREATE OR REPLACE FUNCTION skewed.{clock}() RETURNS timestamptz LANGUAGE sql STABLE \
                 AS $$ SELECT pg_catalog.{clock}() + interval '{ahead}' $$"
            );
            run(&mut conn, &sql).await;
        }
        let (mut conn, name) = self.outside().await;
        let path = format!("ALTER DATABASE {name} SET search_path = skewed, pg_catalog, public");
        run(&mut conn, &path).await;
    }

    /// Ends all connections, like a restarted server.
    pub async fn disconnect_all(&self) {
        let (mut conn, name) = self.outside().await;
        terminate(&mut conn, &name).await;
    }

    /// Ends all connections and refuses new ones.
    pub async fn go_away(&self) {
        let (mut conn, name) = self.outside().await;
        run(
            &mut conn,
            &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false"),
        )
        .await;
        terminate(&mut conn, &name).await;
    }

    /// Undoes [`Self::go_away`].
    pub async fn come_back(&self) {
        let (mut conn, name) = self.outside().await;
        run(
            &mut conn,
            &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true"),
        )
        .await;
    }

    /// A connection to the server's own database, and the name of this one.
    async fn outside(&self) -> (AsyncPgConnection, String) {
        let mut url: Url = self.url().parse().expect("a test database has a URL");
        let name = url.path().trim_start_matches('/').to_owned();
        url.set_path("postgres");
        let conn = AsyncPgConnection::establish(url.as_str())
            .await
            .expect("the test server answers");
        (conn, name)
    }
}

async fn terminate(conn: &mut AsyncPgConnection, name: &str) {
    let sql =
        format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
    run(conn, &sql).await;
}

/// Runs a statement outside a transaction, and repeats it if PostgreSQL ended it to resolve a deadlock: a statement
/// that locks whole tables can meet the transactions of the services in either order.
async fn run_past_deadlocks(conn: &mut AsyncPgConnection, sql: &str) -> usize {
    loop {
        match sql_query(sql).execute(conn).await {
            Ok(changed) => return changed,
            Err(Error::DatabaseError(_, info)) if info.message() == "deadlock detected" => {}
            Err(error) => panic!("`{sql}`: {error}"),
        }
    }
}

async fn run(conn: &mut AsyncPgConnection, sql: &str) -> usize {
    sql_query(sql)
        .execute(conn)
        .await
        .unwrap_or_else(|error| panic!("`{sql}`: {error}"))
}
