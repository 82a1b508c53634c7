-- $1 text: kind
-- $2 text[]: keys
-- $3 uuid: replica
-- $4 boolean: whether it may take over
SELECT key,
    (l.leased_by IS NOT NULL OR l.next_time <= clock_timestamp())
        AND (l.leased_by IS NULL OR l.leased_by = $3 OR $4 AND NOT l.leased_by IN (
            SELECT id FROM replicas WHERE heartbeat_time > clock_timestamp() - interval '4 seconds')) AS is_free,
    l.crash_count + CASE WHEN l.leased_by <> $3 AND l.leased_by IN (SELECT id FROM replicas
            WHERE heartbeat_time <= clock_timestamp() - interval '4 seconds')
        AND NOT (l.crash_count >= 3 AND l.crash_count % 2 = 1) THEN 1 ELSE 0 END::smallint >= 2 AS is_suspect
FROM leases AS l WHERE kind = $1 AND key = ANY ($2)
