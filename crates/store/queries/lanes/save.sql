-- $1 uuid[]: namespaces
-- $2 uuid[]: ids
-- $3 integer[]: failure_streak
-- $4 integer[]: recent_outcomes
-- $5 smallint[]: recent_count
-- $6 timestamptz[]: open_until
-- $7 integer[]: open_count
-- $8 uuid[]: probed_by
-- $9 timestamptz[]: probe_end_time
-- $10 timestamptz[]: last_success_time
-- $11 timestamptz[]: failing_since
-- $12 timestamptz[]: rate_time
-- $13 timestamptz[]: next_due_time
UPDATE connection_lanes AS l SET failure_streak = g.failure_streak, recent_outcomes = g.recent_outcomes,
    recent_count = g.recent_count, open_until = g.open_until, open_count = g.open_count,
    probed_by = g.probed_by, probe_end_time = g.probe_end_time, last_success_time = g.last_success_time,
    failing_since = g.failing_since, rate_time = g.rate_time, next_due_time = g.next_due_time
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
    AS g (namespace_id, connection_id, failure_streak, recent_outcomes, recent_count, open_until, open_count,
        probed_by, probe_end_time, last_success_time, failing_since, rate_time, next_due_time)
WHERE l.namespace_id = g.namespace_id AND l.connection_id = g.connection_id
