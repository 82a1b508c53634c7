-- $1 uuid[]: namespaces
-- $2 uuid[]: subject_id
-- $3 integer[]: interval_seconds
-- $4 timestamptz[]: time
-- $5 jsonb[]: counts
INSERT INTO stats (namespace_id, subject_id, interval_seconds, time, counts)
SELECT * FROM unnest($1, $2, $3, $4, $5)
