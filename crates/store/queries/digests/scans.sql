-- $1 uuid: id of the delivery
-- $2 bigint: most Scans
SELECT namespace_id, manager_id, scan_id, count(*) OVER () AS total FROM digest_scans
WHERE delivery_id = $1 ORDER BY scan_id DESC LIMIT $2
