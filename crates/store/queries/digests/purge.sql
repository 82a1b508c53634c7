-- $1 double precision: seconds for which deliveries are kept
WITH headers AS (
    DELETE FROM digests WHERE id_time(delivery_id) < clock_timestamp() - $1 * interval '1 second'
)
DELETE FROM digest_scans WHERE create_time < clock_timestamp() - $1 * interval '1 second' AND delivery_id IS NOT NULL
