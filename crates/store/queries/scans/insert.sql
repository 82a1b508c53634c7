-- $1 uuid[]: namespaces
-- $2 uuid[]: Managers
-- $3 uuid[]: ids
-- $4 timestamptz[]: create_time
-- $5 uuid[]: post_id
-- $6 timestamptz[]: post_receive_time
-- $7 jsonb[]: matched
-- $8 boolean: fanned_out of all
INSERT INTO scans (namespace_id, manager_id, id, create_time, update_time, post_id,
    post_receive_time, value, matched, fanned_out)
SELECT namespace_id, manager_id, id, time, time, post_id, post_time, true, matched, $8
FROM unnest($1, $2, $3, $4, $5, $6, $7)
    AS given (namespace_id, manager_id, id, time, post_id, post_time, matched)
