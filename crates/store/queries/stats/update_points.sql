-- $1 uuid[]: namespaces
-- $2 uuid[]: subject_id
-- $3 integer[]: interval_seconds
-- $4 timestamptz[]: time
-- $5 jsonb[]: counts
UPDATE stats AS s SET counts = given.counts
FROM unnest($1, $2, $3, $4, $5) AS given (namespace_id, subject_id, interval_seconds, time, counts)
WHERE s.namespace_id = given.namespace_id AND s.subject_id = given.subject_id
    AND s.interval_seconds = given.interval_seconds AND s.time = given.time
