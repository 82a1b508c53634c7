-- $1 bigint: look-back
SELECT FROM backfills WHERE look_back_id = $1
ORDER BY namespace_id, manager_id, feed, notify FOR UPDATE
