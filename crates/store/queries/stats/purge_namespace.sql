-- $1 uuid: namespace
-- $2 bigint: most points
DELETE FROM stats WHERE ctid = ANY (ARRAY(SELECT ctid FROM stats WHERE namespace_id = $1 LIMIT $2))
