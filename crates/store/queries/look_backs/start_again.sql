-- $1 bigint: look-back
-- $2 uuid[]: namespaces
-- $3 uuid[]: managers
UPDATE backfills SET state = 'WAITING', look_back_id = NULL, before = NULL,
    create_time = clock_timestamp(), update_time = clock_timestamp()
WHERE look_back_id = $1 AND (namespace_id, manager_id) IN (SELECT * FROM unnest($2, $3))
