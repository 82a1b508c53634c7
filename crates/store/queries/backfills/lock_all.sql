-- $1 uuid: namespace
-- $2 uuid[]: managers
SELECT FROM backfills WHERE namespace_id = $1 AND manager_id = ANY ($2)
ORDER BY manager_id, feed, notify FOR UPDATE
