-- $1 uuid[]: namespaces
-- $2 uuid[]: ids
-- Without a condition on the hint: PostgreSQL would evaluate it on the row as it was before another transaction's
-- lock, and so miss that the hint has just been moved.
UPDATE connection_lanes AS l SET next_due_time = least(coalesce(l.next_due_time, 'infinity'),
    greatest(clock_timestamp(), l.open_until, l.probe_end_time, l.rate_time - interval '500 milliseconds'))
FROM unnest($1, $2) AS given (namespace_id, connection_id)
WHERE l.namespace_id = given.namespace_id AND l.connection_id = given.connection_id
