-- $1 uuid: replica
-- $2 boolean: whether it may take over
-- $3 text[]: look-backs in hand
-- $4 bigint[]: chosen look-backs
WITH due AS (
    SELECT id FROM look_backs WHERE id = ANY ($4) AND next_time <= clock_timestamp() AND id::text <> ALL ($3)
        AND (leased_by IS NULL OR leased_by = $1 OR $2 AND NOT leased_by IN (
            SELECT id FROM replicas WHERE heartbeat_time > clock_timestamp() - interval '4 seconds'))
    FOR UPDATE SKIP LOCKED
)
UPDATE look_backs AS l SET leased_by = $1,
    crash_count = CASE WHEN clear_time IS NULL THEN crash_count
        WHEN clear_time < clock_timestamp() - interval '1 hour' THEN 0 ELSE least(crash_count, 1) END
        + CASE WHEN leased_by <> $1 AND leased_by IN (SELECT id FROM replicas
                WHERE heartbeat_time <= clock_timestamp() - interval '4 seconds')
            AND NOT (crash_count >= 3 AND crash_count % 2 = 1) THEN 1 ELSE 0 END::smallint,
    clear_time = CASE WHEN leased_by <> $1 AND leased_by IN (SELECT id FROM replicas
        WHERE heartbeat_time <= clock_timestamp() - interval '4 seconds') THEN NULL ELSE clear_time END
FROM due WHERE l.id = due.id
RETURNING l.id, feed, notify, since, cursor, failure_count, crash_count,
    crash_count >= 2 AND clear_time IS NULL AS is_suspect
