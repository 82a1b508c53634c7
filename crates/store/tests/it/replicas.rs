use store::replicas;
use test_support::TestDatabase;
use uuid::Uuid;

use crate::support::{number, run};

#[tokio::test]
async fn a_heartbeat_renews_one_row_and_sweeps_the_long_silent() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    let [one, two] = [(); 2].map(|()| Uuid::new_v4());
    replicas::beat(&mut conn, one, "scanner").await.unwrap();
    replicas::beat(&mut conn, two, "scanner").await.unwrap();
    run(
        &mut conn,
        "UPDATE replicas SET heartbeat_time = heartbeat_time - interval '2 hours'",
    )
    .await;

    // Its own row is renewed, however old.
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
