-- $1 double precision: seconds for which deliveries are kept
-- Deliveries are dropped by whole weeks, and one that is sent again needs its Scans. The first id of that time; Scans that
-- wait for a digest have none.
WITH oldest AS (
    SELECT (lpad(to_hex((extract(epoch FROM clock_timestamp() - $1 * interval '1 second' - interval '7 days') * 1000)::bigint),
        12, '0') || repeat('0', 20))::uuid AS id
), headers AS (
    DELETE FROM digests WHERE delivery_id < (SELECT id FROM oldest)
)
DELETE FROM digest_scans WHERE delivery_id < (SELECT id FROM oldest)
