-- $1 uuid[]: namespaces
-- $2 uuid[]: subject_id
-- $3 integer[]: interval_seconds
-- $4 timestamptz[]: time
SELECT given.place, s.counts
FROM unnest($1, $2, $3, $4) WITH ORDINALITY
    AS given (namespace_id, subject_id, interval_seconds, time, place)
JOIN stats AS s USING (namespace_id, subject_id, interval_seconds, time)
