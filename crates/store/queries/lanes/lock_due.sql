-- $1 uuid[]: namespaces
-- $2 uuid[]: ids
SELECT l.namespace_id, l.connection_id, l.failure_streak, l.recent_outcomes, l.recent_count, l.open_until,
    l.open_count, l.probed_by, l.probe_end_time, l.last_success_time, l.failing_since, l.rate_time,
    l.next_due_time, clock_timestamp() AS now, c.state = 'ACTIVE' AS active,
    c.update_time AS connection_update_time, c.format = 'EMAIL' AS is_email,
    CASE c.format WHEN 'DISCORD' THEN 28 ELSE coalesce(c.max_per_second * 60,
        CASE c.format WHEN 'SLACK' THEN 60 WHEN 'TEAMS' THEN 240 END) END AS per_minute,
    EXISTS (SELECT FROM replicas AS r WHERE r.id = l.probed_by
        AND r.heartbeat_time > clock_timestamp() - interval '4 seconds') AS prober_lives
FROM connection_lanes AS l
JOIN connections AS c ON c.namespace_id = l.namespace_id AND c.id = l.connection_id
JOIN unnest($1, $2) AS given (namespace_id, connection_id)
    ON l.namespace_id = given.namespace_id AND l.connection_id = given.connection_id
WHERE l.next_due_time <= statement_timestamp()
ORDER BY l.namespace_id, l.connection_id FOR NO KEY UPDATE OF l SKIP LOCKED
