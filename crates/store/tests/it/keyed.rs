//! Transactions that are planned once: they commit, are taken back, and leave the connection as it was.

use store::{QueryError, keyed};

use crate::support::{number, run, start};

#[tokio::test]
async fn what_succeeds_is_kept_and_what_fails_is_taken_back() {
    let mut at = start().await;
    let conn = &mut at.conn;
    run(conn, "CREATE TABLE kept (number bigint)").await;

    keyed::begin(conn).await.unwrap();
    run(conn, "INSERT INTO kept VALUES (1)").await;
    assert!(matches!(
        keyed::begin(conn).await,
        Err(QueryError::AlreadyInTransaction)
    ));
    keyed::end(conn, Ok::<_, QueryError>(())).await.unwrap();

    keyed::begin(conn).await.unwrap();
    run(conn, "INSERT INTO kept VALUES (2)").await;
    let failed = keyed::end(conn, Err::<(), _>(QueryError::NotFound)).await;
    assert!(matches!(failed, Err(QueryError::NotFound)));

    assert_eq!(
        number(conn, "SELECT sum(number)::bigint AS number FROM kept").await,
        1
    );
    let settings = "SELECT count(*) AS number FROM pg_settings WHERE source = 'session' \
        AND name IN ('plan_cache_mode', 'enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'jit')";
    assert_eq!(number(conn, settings).await, 0);
}
