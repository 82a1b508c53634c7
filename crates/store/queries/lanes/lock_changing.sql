-- $1 uuid[]: namespaces
-- $2 uuid[]: ids
-- $3 boolean[]: true for those with failed attempts
SELECT l.namespace_id, l.connection_id FROM connection_lanes AS l
JOIN unnest($1, $2, $3) AS given (namespace_id, connection_id, failed)
    ON l.namespace_id = given.namespace_id AND l.connection_id = given.connection_id
WHERE given.failed OR l.recent_outcomes <> 0 OR l.recent_count < 20 OR l.open_until IS NOT NULL OR l.open_count > 0
    OR l.failing_since IS NOT NULL OR l.last_success_time IS NULL
    OR l.last_success_time < statement_timestamp() - interval '1 minute'
ORDER BY l.namespace_id, l.connection_id FOR NO KEY UPDATE OF l
