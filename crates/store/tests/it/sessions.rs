//! Names of sessions at PostgreSQL.

use diesel::{QueryableByName, sql_query, sql_types::Text};
use diesel_async::RunQueryDsl;
use test_support::TestDatabase;

use crate::support::run;

#[derive(QueryableByName)]
struct Named {
    #[diesel(sql_type = Text)]
    name: String,
}

async fn name_at(url: &str) -> String {
    let mut conn = store::establish(url).await.unwrap();
    let named = sql_query("SELECT current_setting('application_name') AS name");
    named.get_result::<Named>(&mut conn).await.unwrap().name
}

#[tokio::test]
async fn a_session_has_the_programs_name_unless_the_url_gives_one() {
    let database = TestDatabase::create().await;
    let program = std::env::current_exe().unwrap();
    let program = program.file_stem().unwrap().to_str().unwrap();
    assert_eq!(name_at(database.url()).await, program);

    let url = database.url();
    let sign = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{sign}application_name=of-mine");
    assert_eq!(name_at(&url).await, "of-mine");
}

#[tokio::test]
async fn a_pool_discards_connections_to_a_server_that_became_read_only() {
    let database = TestDatabase::create().await;
    let pool = store::connect(database.url(), 2).unwrap();
    let write = "CREATE TABLE written ()";
    {
        let mut conns = [pool.get().await.unwrap(), pool.get().await.unwrap()];
        for conn in &mut conns {
            run(conn, "SET default_transaction_read_only = on").await;
        }
        let refused = sql_query(write).execute(&mut conns[0]).await;
        assert!(refused.is_err());
    }
    let mut conns = [pool.get().await.unwrap(), pool.get().await.unwrap()];
    run(&mut conns[0], write).await;
    run(&mut conns[1], "DROP TABLE written").await;
}
