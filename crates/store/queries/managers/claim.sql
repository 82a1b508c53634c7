-- $1 uuid: replica
-- $2 boolean: whether it may take over
-- $3 text[]: keys in hand
-- $4 uuid[]: namespaces
-- $5 uuid[]: managers
WITH due AS (
    SELECT m.namespace_id, m.id FROM managers AS m
    WHERE (m.namespace_id, m.id) IN (SELECT * FROM unnest($4, $5)) AND m.state = 'PENDING_APPLY'
        AND (m.compiled_generation <> m.generation
            OR (m.compiled_by IS NULL OR m.compiled_by = $1 OR $2 AND NOT m.compiled_by IN (
                SELECT id FROM replicas WHERE heartbeat_time > clock_timestamp() - interval '4 seconds')))
        AND m.id::text || ':' || m.generation <> ALL ($3)
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE managers AS m SET compiled_by = $1, compiled_generation = m.generation,
    crash_count = CASE WHEN m.clear_time IS NULL THEN m.crash_count
        WHEN m.clear_time < clock_timestamp() - interval '1 hour' THEN 0 ELSE least(m.crash_count, 1) END
        + CASE WHEN m.compiled_by <> $1 AND m.compiled_by IN (SELECT id FROM replicas
                WHERE heartbeat_time <= clock_timestamp() - interval '4 seconds')
            AND NOT (m.crash_count >= 3 AND m.crash_count % 2 = 1) THEN 1 ELSE 0 END::smallint,
    clear_time = CASE WHEN m.compiled_by <> $1 AND m.compiled_by IN (SELECT id FROM replicas
        WHERE heartbeat_time <= clock_timestamp() - interval '4 seconds') THEN NULL ELSE m.clear_time END
FROM due WHERE m.namespace_id = due.namespace_id AND m.id = due.id
RETURNING m.id, m.generation, m.crash_count, m.crash_count >= 2 AND m.clear_time IS NULL AS is_suspect,
    m.id::text || ':' || m.generation AS key
