//! Privileges of the services' own roles.

use diesel::sql_query;
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use store::roles::Service;
use test_support::{Fixture, TestDatabase};

#[tokio::test]
async fn no_service_can_make_a_key_and_only_two_can_read_sealed_values() {
    let database = TestDatabase::create().await;
    let mut owner = database.connect().await;
    let fixture = Fixture::create(&mut owner).await;
    fixture
        .connection(&mut owner, "https://hooks.example.com/")
        .await;
    for service in Service::EACH {
        let mut conn = AsyncPgConnection::establish(&database.url_of(service))
            .await
            .unwrap();
        for statement in [
            "INSERT INTO accounts (id, name, create_time) VALUES (gen_random_uuid(), 'mallory', now())",
            "INSERT INTO api_keys (id, account_id, secret_hash, role, create_time) \
             SELECT gen_random_uuid(), id, sha256('x'), 'OWNER', now() FROM accounts",
            "UPDATE api_keys SET revoke_time = NULL",
            "UPDATE api_keys SET networks = NULL",
            "DROP TABLE posts",
            "CREATE TABLE mine (id int)",
        ] {
            let refused = sql_query(statement).execute(&mut conn).await.unwrap_err();
            let refused = refused.to_string();
            let expected = ["permission denied", "must be owner"];
            assert!(
                expected.iter().any(|text| refused.contains(text)),
                "{service:?}: {statement}: {refused}"
            );
        }
        let opens = matches!(service, Service::Gateway | Service::Dispatcher);
        let read = sql_query("SELECT url_sealed FROM connections")
            .execute(&mut conn)
            .await;
        assert_eq!(read.is_ok(), opens, "{service:?}: {read:?}");
    }
}

#[tokio::test]
async fn drop_partition_drops_only_partitions() {
    let database = TestDatabase::create().await;
    let url = database.url_of(Service::Dispatcher);
    let mut conn = AsyncPgConnection::establish(&url).await.unwrap();
    store::migrations::ensure_partitions(&mut conn)
        .await
        .unwrap();
    for (parent, partition) in [
        ("posts", "api_keys"),
        ("posts", "posts"),
        ("replicas", "replicas"),
        ("posts", "nothing"),
    ] {
        let refused = sql_query(format!("SELECT drop_partition('{parent}', '{partition}')"))
            .execute(&mut conn)
            .await
            .unwrap_err();
        assert!(refused.to_string().contains("no partition of"), "{refused}");
    }
}

#[tokio::test]
async fn each_table_has_privileges_that_were_decided() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    for size in store::sizes::by_table(&mut conn).await.unwrap() {
        assert!(
            store::roles::is_decided(&size.table),
            "{}: say in store::roles what each service may do with it",
            size.table
        );
    }
    assert!(!store::roles::is_decided("a_new_table"));
}

#[tokio::test]
async fn scanner_cannot_change_managers_or_where_scans_go() {
    let database = TestDatabase::create().await;
    let url = database.url_of(Service::Scanner);
    let mut conn = AsyncPgConnection::establish(&url).await.unwrap();
    for statement in [
        "UPDATE managers SET enable = true",
        "DELETE FROM managers",
        "INSERT INTO manager_notices SELECT * FROM manager_notices",
        "UPDATE deliveries SET connection_id = connection_id",
        "INSERT INTO deliveries SELECT * FROM deliveries",
        "UPDATE connection_lanes SET open_until = NULL",
        "INSERT INTO feed_watchers SELECT * FROM feed_watchers",
        "UPDATE plan_version SET version = version",
        "INSERT INTO replays SELECT * FROM replays",
    ] {
        let refused = sql_query(statement).execute(&mut conn).await.unwrap_err();
        assert!(
            refused.to_string().contains("permission denied"),
            "{statement}: {refused}"
        );
    }
}
