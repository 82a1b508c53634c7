//! Query plans for lists of Scans, at any depth.

use diesel::{QueryableByName, sql_query, sql_types::Text};
use diesel_async::RunQueryDsl;
use domain::list::{ListQuery, SCAN_FIELDS};
use test_support::{Fixture, TestDatabase, instructions};
use uuid::Uuid;

use super::{ALL_LISTING, LISTING, SELECT, SELECT_ALL};
use crate::listing::Listing;

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text, column_name = "QUERY PLAN")]
    text: String,
}

#[tokio::test]
async fn pages_by_create_time_are_read_from_an_index_and_never_sorted() {
    let database = TestDatabase::create().await;
    let conn = &mut database.connect().await;
    let fixture = Fixture::create(conn).await;
    let manager = fixture
        .applied_manager(conn, &instructions("rust"), &[])
        .await;
    let (namespace, manager) = (fixture.namespace.to_uuid(), manager.manager.to_uuid());
    // Two weeks, and as many Scans of another Manager.
    for (ns, id) in [(namespace, manager), (Uuid::new_v4(), Uuid::new_v4())] {
        sql_query(format!(
            "INSERT INTO scans SELECT '{ns}', '{id}', gen_random_uuid(), clock_timestamp() - n * interval '10 seconds', \
                 clock_timestamp(), gen_random_uuid(), clock_timestamp(), true, '{{\"score\": 1, \"terms\": []}}', true \
             FROM generate_series(1, 40000) AS n"
        ))
        .execute(conn)
        .await
        .unwrap();
    }
    sql_query("ANALYZE").execute(conn).await.unwrap();
    let explained = |select: &str, listing: &Listing| Listing {
        select: Box::leak(format!("EXPLAIN {select}").into_boxed_str()),
        ..*listing
    };
    let one = (explained(SELECT, &LISTING), vec![namespace, manager]);
    let all = (explained(SELECT_ALL, &ALL_LISTING), vec![namespace]);
    for (listing, parents) in [one, all] {
        for order in ["", "createTime asc"] {
            for filter in ["", r#"createTime > "2026-01-01T00:00:00Z""#] {
                let list = ListQuery::parse(
                    "parent",
                    SCAN_FIELDS,
                    Some("5"),
                    None,
                    Some(filter),
                    Some(order),
                )
                .unwrap();
                let plan: Vec<Line> = listing.page(&parents, &list).load(conn).await.unwrap();
                let plan: Vec<String> = plan.into_iter().map(|line| line.text).collect();
                let plan = plan.join("\n");
                assert!(
                    !plan.contains("Sort") && !plan.contains("Seq Scan on scans"),
                    "{plan}"
                );
                assert!(plan.contains("Index Scan"), "{plan}");
            }
        }
    }
}
