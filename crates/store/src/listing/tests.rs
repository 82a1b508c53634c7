//! Checks that every field has a column, and every default order an index.

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    Id, Timestamp,
    field::{Field, Literal},
    list::{
        AUDIT_EVENT_FIELDS, CONNECTION_FIELDS, DELIVERY_FIELDS, ListQuery, MANAGER_FIELDS,
        NAMESPACE_FIELDS, REPLAY_FIELDS, SCAN_FIELDS,
    },
    order::{Direction, OrderBy},
    page::PageToken,
};
use test_support::TestDatabase;
use uuid::Uuid;

use super::Listing;
use crate::{audit, connections, deliveries, managers, namespaces, replays, scans};

const LISTINGS: [(&Listing, &[Field]); 8] = [
    (&audit::LISTING, AUDIT_EVENT_FIELDS),
    (&audit::LISTING_OF_ACCOUNT, AUDIT_EVENT_FIELDS),
    (&namespaces::LISTING, NAMESPACE_FIELDS),
    (&connections::LISTING, CONNECTION_FIELDS),
    (&managers::LISTING, MANAGER_FIELDS),
    (&scans::LISTING, SCAN_FIELDS),
    (&deliveries::LISTING, DELIVERY_FIELDS),
    (&replays::LISTING, REPLAY_FIELDS),
];

#[test]
fn every_field_has_a_column_and_every_column_a_field() {
    for (listing, fields) in LISTINGS {
        let columns: Vec<&str> = listing.columns.iter().map(|column| column.field).collect();
        let fields: Vec<&str> = fields.iter().map(|field| field.name).collect();
        assert_eq!(columns, fields, "{}", listing.select);
    }
}

/// A few thousand rows under each of two parents, one per minute.
const ROWS: &str = "
    INSERT INTO accounts SELECT md5(n::text)::uuid, 'account-' || n, now() FROM generate_series(0, 1) AS n;
    INSERT INTO namespaces SELECT gen_random_uuid(), md5((n % 2)::text)::uuid, 'ours', t, t
        FROM generate_series(1, 4000) AS n, LATERAL (SELECT now() - n * interval '1 minute') AS at (t);
    INSERT INTO namespaces SELECT md5(n::text)::uuid, md5(n::text)::uuid, 'parent', now(), now()
        FROM generate_series(0, 1) AS n;
    INSERT INTO connections
        SELECT md5((n % 2)::text)::uuid, gen_random_uuid(), 'hook', 'https://a.example/', 'POST', '', 'ACTIVE', NULL, t, t
        FROM generate_series(1, 4000) AS n, LATERAL (SELECT now() - n * interval '1 minute') AS at (t);
    INSERT INTO managers (namespace_id, id, nickname, enable, mode, source, state, input, submit_time, create_time, update_time)
        SELECT md5((n % 2)::text)::uuid, gen_random_uuid(), 'watch', true, 'AUTOMATIC', 'FORUM', 'PENDING_APPLY', '{}', t, t, t
        FROM generate_series(1, 4000) AS n, LATERAL (SELECT now() - n * interval '1 minute') AS at (t);
    INSERT INTO managers (namespace_id, id, nickname, enable, mode, source, state, input, submit_time, create_time, update_time)
        VALUES (md5('0')::uuid, md5('0')::uuid, 'watch', true, 'AUTOMATIC', 'FORUM', 'PENDING_APPLY', '{}', now(), now(), now());
    INSERT INTO posts (id, receive_time, post_key, feed, type, time, post_id, title, url, user_id, user_name, user_url)
        SELECT md5(n::text)::uuid, t, md5(n::text)::uuid, 'forum:a', 'FORUM_LINK', t, n, 'title', '', '', '', ''
        FROM generate_series(1, 8000) AS n, LATERAL (SELECT now() - n * interval '1 minute') AS at (t);
    INSERT INTO scans (namespace_id, manager_id, id, create_time, update_time, post_id, post_receive_time, value, matched)
        SELECT md5((n % 2)::text)::uuid, md5((n % 2)::text)::uuid, gen_random_uuid(), t, t, md5(n::text)::uuid, t, true, '{}'
        FROM generate_series(1, 8000) AS n, LATERAL (SELECT now() - n * interval '1 minute') AS at (t);
    INSERT INTO connections (namespace_id, id, nickname, url, method, headers_sealed, create_time, update_time)
        SELECT md5(n::text)::uuid, md5(n::text)::uuid, 'hook', 'https://a.example/', 'POST', '', now(), now()
        FROM generate_series(0, 1) AS n;
    INSERT INTO deliveries (namespace_id, connection_id, id, create_time, update_time, manager_id, scan_id, state)
        SELECT md5((n % 2)::text)::uuid, md5((n % 2)::text)::uuid, gen_random_uuid(), t, t, gen_random_uuid(),
            gen_random_uuid(), CASE WHEN n % 100 = 0 THEN 'EXHAUSTED' ELSE 'SUCCEEDED' END
        FROM generate_series(1, 8000) AS n, LATERAL (SELECT now() - n * interval '1 minute') AS at (t);
    INSERT INTO replays (namespace_id, connection_id, id, create_time, update_time, start_time, end_time, state, total,
            counted, place_time, place_id, next_batch_time)
        SELECT md5((n % 2)::text)::uuid, md5((n % 2)::text)::uuid, gen_random_uuid(), t, t, t, t, 'DONE', 0, true, t,
            gen_random_uuid(), t
        FROM generate_series(1, 4000) AS n, LATERAL (SELECT now() - n * interval '1 minute') AS at (t);
    INSERT INTO audit_events (account_id, namespace_id, id, create_time, action, resource, fields, actor_type)
        SELECT md5((n % 2)::text)::uuid, md5((n % 2)::text)::uuid, gen_random_uuid(), t, 'UPDATE', 'r', '{}', 'OPERATOR'
        FROM generate_series(1, 4000) AS n, LATERAL (SELECT now() - n * interval '1 minute') AS at (t);
    ANALYZE";

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    #[diesel(column_name = "QUERY PLAN")]
    text: String,
}

/// Returns the plan of a page of `listing`.
async fn explain(
    conn: &mut AsyncPgConnection,
    how: &str,
    listing: &Listing,
    parents: &[Uuid],
    list: &ListQuery,
) -> String {
    let explained = Listing {
        select: Box::leak(format!("{how} {}", listing.select).into_boxed_str()),
        ..*listing
    };
    let lines: Vec<Line> = explained.page(parents, list).load(conn).await.unwrap();
    lines.into_iter().map(|line| line.text + "\n").collect()
}

#[tokio::test]
async fn first_and_deep_pages_are_read_from_an_index() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    for statement in ROWS.split(';') {
        sql_query(statement).execute(&mut conn).await.unwrap();
    }
    // Indexes are used even if the current week is still small.
    sql_query("SET enable_seqscan = off")
        .execute(&mut conn)
        .await
        .unwrap();
    // md5('0').
    let parent: Uuid = "cfcd2084-95d5-65ef-66e7-dff9f98764da".parse().unwrap();
    let deep = Timestamp::now().minus(std::time::Duration::from_secs(3_000 * 60));
    let since = format!("createTime > \"{deep}\"");
    for (listing, fields) in LISTINGS {
        let parents: &[Uuid] = if listing.select.contains("$2") {
            &[parent, parent]
        } else {
            &[parent]
        };
        for (filter, order) in [
            ("", ""),
            ("", "createTime"),
            ("", "name"),
            ("", "name desc"),
            ("", "createTime desc, name desc"),
            ("", "createTime desc, name desc, updateTime"),
            (since.as_str(), "createTime asc"),
            (since.as_str(), "name"),
        ] {
            let is_of_field = |name: &str| fields.iter().any(|field| field.name == name);
            if order.contains("updateTime") && !is_of_field("updateTime") {
                continue;
            }
            let value = |(field, _): &(Field, Direction)| match field.name {
                "name" => Some(Literal::Text("the id tells it".to_owned())),
                _ => Some(Literal::Time(deep)),
            };
            let order_by = OrderBy::parse(order, fields).unwrap();
            let token = PageToken {
                values: order_by.0.iter().map(value).collect(),
                id: Id::at(deep),
            };
            let token = token.encode(&["parent", filter, order].join("\n"));
            for token in [None, Some(token.as_str())] {
                let list =
                    ListQuery::parse("parent", fields, None, token, Some(filter), Some(order));
                let plan = explain(&mut conn, "EXPLAIN", listing, parents, &list.unwrap()).await;
                let at = format!("filter `{filter}`, order `{order}`, {token:?}:\n{plan}");
                // Reading an empty partition whole costs nothing.
                let read_whole =
                    |line: &str| line.contains("Seq Scan") && !line.contains("cost=0.00..0.00");
                assert!(!plan.lines().any(read_whole), "{at}");
                assert!(!plan.contains("Sort"), "{at}");
                // The position is looked up, not scanned up to.
                let looked_up = plan
                    .lines()
                    .any(|line| line.contains("Index Cond") && line.contains("create_time"));
                assert!(token.is_none() || looked_up, "{at}");
            }
        }
    }
}

/// Only exhausted deliveries with the wanted status are read.
#[tokio::test]
async fn status_filter_of_exhausted_deliveries_uses_an_index() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    for statement in ROWS.split(';') {
        sql_query(statement).execute(&mut conn).await.unwrap();
    }
    sql_query("SET enable_seqscan = off")
        .execute(&mut conn)
        .await
        .unwrap();
    // md5('0').
    let parent: Uuid = "cfcd2084-95d5-65ef-66e7-dff9f98764da".parse().unwrap();
    for status in ["lastStatusCode >= 400", "lastStatusCode = 503"] {
        let filter = format!("state = EXHAUSTED AND {status}");
        let list = ListQuery::parse("parent", DELIVERY_FIELDS, None, None, Some(&filter), None);
        let (listing, list) = (&deliveries::LISTING, list.unwrap());
        let plan = explain(&mut conn, "EXPLAIN", listing, &[parent, parent], &list).await;
        let told = |line: &&str| line.contains("Index Cond") && line.contains("last_status_code");
        let conditions = plan.lines().filter(|line| line.contains("Index Cond"));
        assert_eq!(
            plan.lines().filter(told).count(),
            conditions.count(),
            "{plan}"
        );
        assert!(plan.contains("last_status_code"), "{plan}");
        assert!(!plan.contains("Filter") && !plan.contains("Sort"), "{plan}");
    }
}

#[tokio::test]
async fn id_selects_the_partition() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    for statement in ROWS.split(';') {
        sql_query(statement).execute(&mut conn).await.unwrap();
    }
    // md5('0').
    let parent: Uuid = "cfcd2084-95d5-65ef-66e7-dff9f98764da".parse().unwrap();
    let lines: Vec<Line> = sql_query(format!(
        "EXPLAIN ANALYZE {} AND s.create_time = $3 AND s.id = $4",
        scans::LISTING.select
    ))
    .bind::<SqlUuid, _>(parent)
    .bind::<SqlUuid, _>(parent)
    .bind::<Timestamptz, _>(Timestamp::now().to_chrono())
    .bind::<SqlUuid, _>(Uuid::nil())
    .load(&mut conn)
    .await
    .unwrap();
    let read = |table: &str| {
        let at = |line: &&Line| line.text.contains(table) && !line.text.contains("never executed");
        lines.iter().filter(at).count()
    };
    let plan: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(
        (read(" on scans_"), read(" on posts_")),
        (1, 0),
        "{plan:#?}"
    );
}

/// One Scan per hour of one Manager, for the past eight weeks.
const WEEKS: &str = "
    SELECT ensure_partitions(parent, now() - interval '56 days', 10) FROM unnest(ARRAY['posts', 'scans']) AS parent;
    INSERT INTO accounts VALUES (md5('0')::uuid, 'account', now());
    INSERT INTO namespaces (id, account_id, nickname, create_time, update_time)
        VALUES (md5('0')::uuid, md5('0')::uuid, 'ours', now(), now());
    INSERT INTO managers (namespace_id, id, nickname, enable, mode, source, state, input, submit_time, create_time, update_time)
        VALUES (md5('0')::uuid, md5('0')::uuid, 'watch', true, 'AUTOMATIC', 'FORUM', 'PENDING_APPLY', '{}', now(), now(), now());
    INSERT INTO posts (id, receive_time, post_key, feed, type, time, post_id, title, url, user_id, user_name, user_url)
        SELECT md5(n::text)::uuid, t, md5(n::text)::uuid, 'forum:a', 'FORUM_LINK', t, n, 'title', '', '', '', ''
        FROM generate_series(1, 1344) AS n, LATERAL (SELECT now() - n * interval '1 hour') AS at (t);
    INSERT INTO scans (namespace_id, manager_id, id, create_time, update_time, post_id, post_receive_time, value, matched)
        SELECT md5('0')::uuid, md5('0')::uuid, gen_random_uuid(), receive_time, receive_time, id, receive_time, true, '{}'
        FROM posts;
    ANALYZE";

#[tokio::test]
async fn page_reads_only_the_weeks_of_its_scans() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    for statement in WEEKS.split(';') {
        sql_query(statement).execute(&mut conn).await.unwrap();
    }
    let parent: Uuid = "cfcd2084-95d5-65ef-66e7-dff9f98764da".parse().unwrap();
    let deep = Timestamp::now().minus(std::time::Duration::from_secs(30 * 86_400));
    let since = format!("createTime > \"{deep}\"");
    for (filter, order, is_deep) in [
        ("", "", false),
        ("", "", true),
        ("", "createTime", false),
        ("", "createTime", true),
        ("", "name desc", true),
        (since.as_str(), "createTime", false),
    ] {
        let order_by = OrderBy::parse(order, SCAN_FIELDS).unwrap();
        let value = |(field, _): &(Field, Direction)| match field.name {
            "name" => Some(Literal::Text("the id tells it".to_owned())),
            _ => Some(Literal::Time(deep)),
        };
        let token = PageToken {
            values: order_by.0.iter().map(value).collect(),
            id: Id::at(deep),
        };
        let token = token.encode(&["parent", filter, order].join("\n"));
        let token = is_deep.then_some(token.as_str());
        let list = ListQuery::parse(
            "parent",
            SCAN_FIELDS,
            None,
            token,
            Some(filter),
            Some(order),
        );
        let parents = [parent, parent];
        let plan = explain(
            &mut conn,
            "EXPLAIN ANALYZE",
            &scans::LISTING,
            &parents,
            &list.unwrap(),
        )
        .await;
        let read = |table: &str| {
            // Future weeks exist already and are empty: each is read once, and returns nothing.
            let at = |line: &&str| {
                line.contains(table) && line.contains("(actual") && !line.contains("rows=0 loops")
            };
            plan.lines().filter(at).count()
        };
        // Six rows may lie in two weeks; at the ends, an adjacent week without rows is asked for its first row.
        let (scans, posts) = (read(" on scans_"), read(" on posts_"));
        let at = format!("`{filter}` by `{order}`, deep: {is_deep}:\n{plan}");
        assert!((1..=3).contains(&scans) && posts <= 2, "{at}");
    }
}
