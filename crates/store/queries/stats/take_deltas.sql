-- $1 bigint: most deltas
-- $2 bigint: id from
DELETE FROM stats_deltas WHERE id IN (SELECT id FROM stats_deltas WHERE id >= $2 ORDER BY id LIMIT $1)
RETURNING feed, namespace_id, subject_id, time, counts
