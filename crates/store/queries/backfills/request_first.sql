-- $1 uuid: namespace
-- $2 uuid: manager
-- $3 text: trace context
INSERT INTO backfills (namespace_id, manager_id, feed, notify, traceparent)
SELECT namespace_id, manager_id, feed, true, $3 FROM feed_watchers
WHERE namespace_id = $1 AND manager_id = $2 ORDER BY feed ON CONFLICT DO NOTHING
