use store::replicas;
use test_support::TestDatabase;
use uuid::Uuid;

use crate::support::{number, run};

#[tokio::test]
async fn a_heartbeat_renews_its_row_and_deletes_long_dead_replicas() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    let [one, two] = [(); 2].map(|()| Uuid::new_v4());
    replicas::beat(&mut conn, one, "scanner").await.unwrap();
    replicas::beat(&mut conn, two, "scanner").await.unwrap();
    run(
        &mut conn,
        "UPDATE replicas SET heartbeat_time = heartbeat_time - interval '2 days'",
    )
    .await;

    // Its own row is renewed, however old it is.
    replicas::beat(&mut conn, one, "scanner").await.unwrap();
    let alive = "SELECT count(*) AS number FROM replicas WHERE heartbeat_time > now() - interval '1 minute'";
    assert_eq!(number(&mut conn, alive).await, 1);
    assert_eq!(
        number(&mut conn, "SELECT count(*) AS number FROM replicas").await,
        1
    );

    replicas::leave(&mut conn, one).await.unwrap();
    replicas::leave(&mut conn, one).await.unwrap();
    assert_eq!(
        number(&mut conn, "SELECT count(*) AS number FROM replicas").await,
        0
    );
}

#[tokio::test]
async fn a_dead_replica_does_not_live_on_when_the_clock_goes_back() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    let [dead, living] = [(); 2].map(|()| Uuid::new_v4());
    replicas::beat(&mut conn, dead, "scanner").await.unwrap();
    run(
        &mut conn,
        "UPDATE replicas SET heartbeat_time = now() + interval '1 hour'",
    )
    .await;
    replicas::beat(&mut conn, living, "scanner").await.unwrap();
    let ahead = "SELECT count(*) AS number FROM replicas WHERE heartbeat_time > now()";
    assert_eq!(number(&mut conn, ahead).await, 0);
}
