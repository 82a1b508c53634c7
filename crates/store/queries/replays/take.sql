-- $1 uuid[]: accounts that had a turn
SELECT r.namespace_id, r.connection_id, r.id, r.start_time, r.end_time, r.states, r.counted, r.place_time,
    r.place_id, n.account_id
FROM replays AS r JOIN namespaces AS n ON n.id = r.namespace_id
WHERE r.state = 'RUNNING' AND r.next_batch_time <= clock_timestamp()
    AND r.namespace_id NOT IN (SELECT id FROM namespaces WHERE account_id = ANY ($1))
ORDER BY r.next_batch_time LIMIT 1 FOR UPDATE OF r SKIP LOCKED
