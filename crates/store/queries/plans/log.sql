-- $1 bigint[]: versions
-- $2 uuid[]: namespaces
-- $3 uuid[]: Managers
-- $4 timestamptz: change_time
INSERT INTO plan_changes (version, namespace_id, manager_id, change_time)
SELECT version, namespace_id, manager_id, $4
FROM unnest($1, $2, $3) AS given (version, namespace_id, manager_id)
