-- $1 text[]: feed
-- $2 uuid[]: namespace
-- $3 uuid[]: Manager or Connection
-- $4 timestamptz[]: time
-- $5 jsonb[]: counts
INSERT INTO stats_deltas (feed, namespace_id, subject_id, time, counts)
SELECT * FROM unnest($1, $2, $3, $4, $5)
