-- $1 uuid: namespace
-- $2 uuid: first Manager
-- $3 uuid: last Manager
-- $4 bigint: most rows
DELETE FROM scan_likes WHERE ctid = ANY (ARRAY (
    SELECT ctid FROM scan_likes WHERE namespace_id = $1 AND manager_id BETWEEN $2 AND $3 LIMIT $4))
