-- $1 uuid: namespace
-- $2 uuid: first Connection
-- $3 uuid: last Connection
-- $4 bigint: most rows
DELETE FROM digest_scans WHERE ctid = ANY (ARRAY (
    SELECT ctid FROM digest_scans WHERE namespace_id = $1 AND connection_id BETWEEN $2 AND $3
    -- The order of the primary key: no step reads the whole table.
    ORDER BY connection_id, manager_id, scan_id LIMIT $4))
