-- $1 uuid: replica
-- $2 uuid[]: deliveries in hand
-- $3 double precision: longest time in seconds that it may hold one
-- $4 boolean: whether it may take over
WITH orphans AS (
    SELECT d.namespace_id, d.connection_id, d.create_time, d.id,
        d.crash_count + CASE WHEN d.leased_by <> $1 AND d.leased_by IN (SELECT id FROM replicas
            WHERE heartbeat_time <= clock_timestamp() - interval '4 seconds')
            THEN 1 ELSE 0 END::smallint AS crashes,
        CASE WHEN d.event IS NOT NULL THEN '' ELSE (
            SELECT CASE WHEN p.erase_time IS NULL THEN '' ELSE 'post_deleted' END FROM managers AS m
            JOIN scans AS s ON s.namespace_id = m.namespace_id AND s.manager_id = m.id
            JOIN posts AS p ON p.receive_time = s.post_receive_time AND p.id = s.post_id
            WHERE m.namespace_id = d.namespace_id AND m.id = d.manager_id
                AND s.create_time = id_time(d.scan_id) AND s.id = d.scan_id LIMIT 1) END AS gone
    FROM deliveries AS d WHERE state = 'IN_FLIGHT' AND id NOT IN (SELECT unnest($2)) AND (
        leased_by = $1 AND update_time NOT BETWEEN clock_timestamp() - $3 * interval '1 second'
            AND clock_timestamp() + interval '1 minute'
        OR $4 AND leased_by <> $1 AND NOT leased_by IN (
            SELECT id FROM replicas WHERE heartbeat_time > clock_timestamp() - interval '4 seconds'))
    FOR UPDATE OF d
), numbered AS (
    SELECT *, row_number() OVER (PARTITION BY crashes ORDER BY create_time, id) AS turn FROM orphans
)
UPDATE deliveries AS d SET leased_by = NULL, update_time = clock_timestamp(), crash_count = orphans.crashes,
    next_attempt_time = CASE WHEN orphans.gone = '' THEN clock_timestamp() + interval '1 second' * CASE
        WHEN orphans.crashes < 2 THEN 0 WHEN orphans.crashes = 2 THEN least(orphans.turn, 3600)
        ELSE least(60 * 4 ^ least(orphans.crashes - 3, 8), 86400) * (1 + random()) END END,
    last_error = CASE WHEN orphans.gone <> '' OR orphans.gone IS NULL THEN coalesce(orphans.gone, 'scan_deleted')
        WHEN orphans.crashes >= 3 THEN
            'the service stopped ' || orphans.crashes || ' times in a row while it sent this'
        ELSE d.last_error END,
    state = CASE WHEN orphans.gone = '' THEN
        CASE WHEN d.attempt_count = 0 OR d.reopen_asked THEN 'PENDING' ELSE 'RETRYING' END ELSE 'CANCELLED' END,
    reopen_asked = false,
    schedule_base = CASE WHEN d.reopen_asked THEN d.attempt_count ELSE d.schedule_base END
FROM numbered AS orphans WHERE d.namespace_id = orphans.namespace_id AND d.connection_id = orphans.connection_id
    AND d.create_time = orphans.create_time AND d.id = orphans.id
RETURNING d.namespace_id, d.connection_id, d.crash_count
