//! Direct access to a test's database, in addition to the queries of `store`.

use diesel::{
    QueryableByName, sql_query,
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
        run(&mut self.connect().await, sql).await
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

async fn run(conn: &mut AsyncPgConnection, sql: &str) -> usize {
    sql_query(sql)
        .execute(conn)
        .await
        .unwrap_or_else(|error| panic!("`{sql}`: {error}"))
}
