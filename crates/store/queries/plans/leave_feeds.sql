-- $1 uuid[]: namespaces
-- $2 uuid[]: managers
-- $3 text[]: feeds that stay
DELETE FROM feed_watchers AS watcher USING unnest($1, $2) AS given (namespace_id, manager_id)
WHERE watcher.namespace_id = given.namespace_id AND watcher.manager_id = given.manager_id
    AND watcher.feed <> ALL ($3) RETURNING watcher.feed
