-- $1 uuid[]: namespaces
-- $2 uuid[]: ids
SELECT l.namespace_id, l.connection_id FROM connection_lanes AS l
JOIN unnest($1, $2) AS given (namespace_id, connection_id)
    ON l.namespace_id = given.namespace_id AND l.connection_id = given.connection_id
ORDER BY l.namespace_id, l.connection_id FOR NO KEY UPDATE OF l SKIP LOCKED
