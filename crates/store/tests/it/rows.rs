//! Thousands of deliveries, inserted by SQL.

use diesel_async::AsyncPgConnection;
use domain::{ConnectionName, ManagerName};

use crate::support::run;

/// An id that contains the time `t`, like `domain::Id`.
const TEST_ID: &str =
    "CREATE OR REPLACE FUNCTION test_id(t timestamptz) RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT (lpad(to_hex(m / 1000), 12, '0') || lpad(to_hex(((m % 1000) << 2)::integer), 3, '0')
        || substr(md5(random()::text), 1, 17))::uuid
    FROM (SELECT (extract(epoch FROM t) * 1000000)::bigint AS m) AS micros
$$";

/// `count` deliveries of as many Scans, `step` apart, with the newest `step` before `newest`, both in SQL. `state`
/// is SQL too, depending on `n` from 1, the newest. The Scans have no posts.
pub(crate) async fn deliveries(
    conn: &mut AsyncPgConnection,
    connection: ConnectionName,
    manager: ManagerName,
    count: u64,
    newest: &str,
    step: &str,
    state: &str,
) {
    run(conn, TEST_ID).await;
    let (namespace, connection, manager) = (
        connection.namespace.to_uuid(),
        connection.connection.to_uuid(),
        manager.manager.to_uuid(),
    );
    // An id has microseconds, which smaller steps would not change.
    run(
        conn,
        format!(
            "WITH made AS MATERIALIZED ( \
                 SELECT n, date_trunc('milliseconds', {newest} - n * interval '{step}') AS t FROM generate_series(1, {count}) AS n \
             ), ids AS MATERIALIZED (SELECT n, t, test_id(t) AS scan, test_id(t) AS id FROM made), new_scans AS ( \
                 INSERT INTO scans (namespace_id, manager_id, id, create_time, update_time, post_id, post_receive_time, value, \
                     matched, fanned_out) \
                 SELECT '{namespace}', '{manager}', scan, t, t, gen_random_uuid(), t, true, '{{}}', true FROM ids \
             ) \
             INSERT INTO deliveries (namespace_id, connection_id, id, create_time, update_time, manager_id, scan_id, state, \
                 attempt_count, last_attempt_time, last_status_code, last_error, next_attempt_time, leased_by) \
             SELECT '{namespace}', '{connection}', id, t, t, '{manager}', scan, state, 1, t, \
                 CASE WHEN n % 3 > 0 THEN 200 + n % 4 * 100 END, CASE WHEN n % 5 = 0 THEN 'timeout' END, \
                 CASE WHEN state IN ('PENDING', 'RETRYING') THEN t + interval '1 day' END, \
                 CASE WHEN state = 'IN_FLIGHT' THEN gen_random_uuid() END \
             FROM ids, LATERAL (SELECT {state} AS state) AS s"
        ),
    )
    .await;
}

/// A partition of `table` that holds the time `at`, in SQL.
pub(crate) async fn partition(conn: &mut AsyncPgConnection, table: &str, at: &str) {
    run(
        conn,
        format!("SELECT ensure_partitions('{table}', {at}, 1)"),
    )
    .await;
}
