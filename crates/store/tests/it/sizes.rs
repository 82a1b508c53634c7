use store::sizes;

use crate::support::{run, start};

#[tokio::test]
async fn sizes_are_those_of_whole_tables() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let before = sizes::by_table(conn).await.unwrap();
    let bytes = |all: &[sizes::TableSize], table: &str| {
        let found = all.iter().find(|one| one.table == table);
        found.map(|one| one.bytes)
    };
    assert!(bytes(&before, "posts").is_some_and(|bytes| bytes > 0));
    assert!(!before.iter().any(|one| one.table.starts_with("posts_")));
    run(
        conn,
        "INSERT INTO audit_events (account_id, id, create_time, action, resource, fields, actor_type) \
         SELECT id, gen_random_uuid(), now(), 'CREATE', 'namespaces/' || n, '{}', 'API_KEY' \
         FROM accounts, generate_series(1, 2000) AS n",
    )
    .await;
    let after = sizes::by_table(conn).await.unwrap();
    assert!(bytes(&after, "audit_events") > bytes(&before, "audit_events"));
    assert_eq!(bytes(&after, "feeds"), bytes(&before, "feeds"));
}
