//! Transactions that are planned once: they commit, roll back, and leave the connection usable.

use std::time::Duration;

use store::{QueryError, keyed, reads};

use crate::support::{number, run, start};

#[tokio::test]
async fn a_success_is_committed_and_a_failure_rolled_back() {
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

#[tokio::test]
async fn a_transaction_that_begins_in_part_leaves_the_connection_usable() {
    let mut at = start().await;
    let conn = &mut at.conn;
    // PostgreSQL accepts `BEGIN`, and refuses a time limit this long.
    let begun = reads::begin(conn, Duration::MAX).await;
    assert!(
        matches!(begun, Err(QueryError::DatabaseError(..))),
        "{begun:?}"
    );
    assert_eq!(number(conn, "SELECT 1::bigint AS number").await, 1);

    keyed::begin(conn).await.unwrap();
    keyed::end(conn, Ok::<_, QueryError>(())).await.unwrap();
}
