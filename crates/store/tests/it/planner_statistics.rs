//! The planner learns of tables that grow.

use store::planner_statistics::analyze_grown;

use crate::support::{number, run, start};

#[tokio::test]
async fn tables_that_grew_are_analyzed_once_for_each_fivefold_growth() {
    let mut at = start().await;
    let conn = &mut at.conn;
    while analyze_grown(conn).await.unwrap().is_some() {}
    let rows = |from: u32, to: u32| {
        format!(
            "INSERT INTO stats SELECT gen_random_uuid(), gen_random_uuid(), 60, now(), '{{}}' \
             FROM generate_series({from}, {to})"
        )
    };
    run(conn, &rows(1, 2_000)).await;
    assert_eq!(analyze_grown(conn).await.unwrap().as_deref(), Some("stats"));
    let counted = "SELECT reltuples::bigint AS number FROM pg_class WHERE oid = 'stats'::regclass";
    assert_eq!(number(conn, counted).await, 2_000);
    assert_eq!(analyze_grown(conn).await.unwrap(), None);
    run(conn, &rows(2_001, 4_000)).await;
    assert_eq!(analyze_grown(conn).await.unwrap(), None);
    run(conn, &rows(4_001, 20_000)).await;
    assert_eq!(analyze_grown(conn).await.unwrap().as_deref(), Some("stats"));
}
