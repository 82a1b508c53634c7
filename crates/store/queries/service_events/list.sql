-- $1 bigint: most events
-- $2 bigint[]: left out
SELECT id FROM service_events WHERE id <> ALL ($2) ORDER BY id LIMIT $1
