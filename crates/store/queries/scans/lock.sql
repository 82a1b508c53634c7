-- $1 uuid: namespace
-- $2 uuid: Manager
-- $3 timestamptz: create_time
-- $4 uuid: id
SELECT s.namespace_id, s.manager_id, s.id, s.create_time, s.update_time, s.value, s.matched, s.labels, s.places,
    p.type AS post_type, p.time, p.post_id AS native_id, p.title, p.text, p.url AS post_url, p.subforum_id,
    p.subforum_name, p.subforum_url, p.user_id, p.user_name, p.user_url
FROM scans AS s
CROSS JOIN LATERAL (SELECT * FROM posts WHERE receive_time = s.post_receive_time AND id = s.post_id LIMIT 1) AS p
WHERE s.namespace_id = $1 AND s.manager_id = $2
    -- The Scans of a deleted Manager are invisible until they are purged.
    AND EXISTS (SELECT FROM managers WHERE namespace_id = $1 AND id = $2)
    AND s.create_time = $3 AND s.id = $4
FOR NO KEY UPDATE OF s
