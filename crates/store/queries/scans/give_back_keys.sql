-- $1 uuid[]: namespaces
-- $2 uuid[]: Managers
-- $3 uuid[]: post_key
DELETE FROM scan_keys AS key USING unnest($1, $2, $3) AS given (namespace_id, manager_id, post_key)
WHERE key.namespace_id = given.namespace_id AND key.manager_id = given.manager_id
    AND key.post_key = given.post_key
