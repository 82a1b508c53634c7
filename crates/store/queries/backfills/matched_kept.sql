-- $1 text: feed
-- $2 boolean: whether Scans are delivered
-- $3 uuid[]: namespaces
-- $4 uuid[]: managers
-- $5 timestamptz[]: reach_time
-- $6 timestamptz[]: since
-- $7 timestamptz[]: before
-- $8 bigint: look-back
UPDATE backfills AS b SET reach_time = given.reach_time, before = given.before,
    state = CASE WHEN given.before IS NULL THEN 'DONE' ELSE 'READING' END,
    look_back_id = CASE WHEN given.before IS NULL THEN NULL ELSE $8 END,
    since = coalesce(given.since, b.since), update_time = clock_timestamp()
FROM unnest($3, $4, $5, $6, $7) AS given (namespace_id, manager_id, reach_time, since, before)
WHERE b.namespace_id = given.namespace_id AND b.manager_id = given.manager_id
    AND b.feed = $1 AND b.notify = $2
