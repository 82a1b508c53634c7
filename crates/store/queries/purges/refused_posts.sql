-- $1 uuid: namespace
-- $2 uuid: first Manager
-- $3 uuid: last Manager
-- $4 bigint: most rows
DELETE FROM refused_posts WHERE ctid = ANY (ARRAY (
    SELECT ctid FROM refused_posts WHERE namespace_id = $1 AND manager_id BETWEEN $2 AND $3 LIMIT $4))
