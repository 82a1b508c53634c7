-- $1 uuid: namespace
-- $2 uuid: Manager or Connection
-- $3 bigint: most points
DELETE FROM stats WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM stats WHERE namespace_id = $1 AND subject_id = $2 LIMIT $3))
