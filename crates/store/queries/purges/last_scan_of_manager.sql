-- $1 uuid: namespace
-- $2 uuid: manager
-- $3 bigint: most Scans
SELECT min(create_time) AS create_time FROM (
    SELECT create_time FROM scans WHERE namespace_id = $1 AND manager_id = $2 ORDER BY create_time DESC LIMIT $3
) AS newest HAVING count(*) > 0
