//! The SQL functions that read ids, compared with `domain::Id`.

use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use domain::{Id, Timestamp};
use test_support::TestDatabase;
use uuid::Uuid;

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = Text)]
    text: String,
    #[diesel(sql_type = Timestamptz)]
    time: DateTime<Utc>,
}

#[tokio::test]
async fn sql_functions_read_ids_as_the_domain_does() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    // Over 200 years, in steps that reach every part of a millisecond; and ids that are not ours.
    let times = (0..2_000).map(|step: i64| step * 3_155_760_000_001 + step % 1_000);
    let ours = times.map(|micros| Id::at(Timestamp::from_micros(micros).unwrap()).to_uuid());
    let strange = (0..2_000).map(|_| Uuid::from_u128(rand::random()));
    let edges = [Uuid::nil(), Uuid::max()];
    let ids: Vec<Uuid> = ours.chain(strange).chain(edges).collect();

    let rows: Vec<Row> =
        sql_query("SELECT id, ulid(id) AS text, id_time(id) AS time FROM unnest($1) AS given (id)")
            .bind::<Array<SqlUuid>, _>(&ids)
            .load(&mut conn)
            .await
            .unwrap();

    assert_eq!(rows.len(), ids.len());
    for row in rows {
        let id = Id::from_uuid(row.id);
        assert_eq!(row.text, id.to_string());
        assert_eq!(Timestamp::from(row.time), id.time(), "{id}");
    }
}
