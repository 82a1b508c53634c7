-- $1 double precision: seconds for which deliveries are kept
-- Deliveries are dropped by whole weeks, and one that is sent again needs its Scans. The first id of that time; Scans that
-- wait for a digest have none. Those of disabled Connections are kept as long as deliveries that wait.
WITH oldest AS (
    SELECT (lpad(to_hex((extract(epoch FROM clock_timestamp() - $1 * interval '1 second' - interval '7 days') * 1000)::bigint),
        12, '0') || repeat('0', 20))::uuid AS id, clock_timestamp() - $1 * interval '1 second' AS time
), headers AS (
    DELETE FROM digests WHERE delivery_id < (SELECT id FROM oldest)
), waiting AS (
    DELETE FROM digest_scans WHERE ctid = ANY (ARRAY (
        SELECT old.ctid FROM connections AS c
        CROSS JOIN LATERAL (
            SELECT d.ctid FROM digest_scans AS d
            WHERE d.connection_id = c.id AND d.delivery_id IS NULL AND d.create_time < (SELECT time FROM oldest)
            ORDER BY d.create_time LIMIT 1000
        ) AS old
        WHERE c.state <> 'ACTIVE'))
)
DELETE FROM digest_scans WHERE delivery_id < (SELECT id FROM oldest)
