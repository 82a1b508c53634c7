-- $1 text: kind
-- $2 text[]: keys
-- $3 uuid: replica
-- $4 boolean: whether it may take over
INSERT INTO leases AS l (kind, key, leased_by) SELECT $1, given.key, $3 FROM unnest($2) AS given (key)
ON CONFLICT (kind, key) DO UPDATE
    SET leased_by = $3,
        crash_count = l.crash_count + CASE WHEN l.leased_by <> $3 AND l.leased_by IN (SELECT id FROM replicas
                WHERE heartbeat_time <= clock_timestamp() - interval '4 seconds')
            AND NOT (l.crash_count >= 3 AND l.crash_count % 2 = 1) THEN 1 ELSE 0 END::smallint
    WHERE (l.leased_by IS NOT NULL OR l.next_time <= clock_timestamp())
        AND (l.leased_by IS NULL OR l.leased_by = $3 OR $4 AND NOT l.leased_by IN (
            SELECT id FROM replicas WHERE heartbeat_time > clock_timestamp() - interval '4 seconds'))
RETURNING key, crash_count
