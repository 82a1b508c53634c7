-- $1 text: feed
-- $2 boolean: whether Scans are delivered
-- $3 uuid[]: namespaces
-- $4 uuid[]: managers
-- $5 timestamptz[]: create_time
SELECT b.namespace_id, b.manager_id FROM backfills AS b
JOIN unnest($3, $4, $5) AS given (namespace_id, manager_id, create_time)
    ON b.namespace_id = given.namespace_id AND b.manager_id = given.manager_id
        AND b.create_time = given.create_time
WHERE b.feed = $1 AND b.notify = $2 AND b.state = 'WAITING' FOR UPDATE OF b SKIP LOCKED
