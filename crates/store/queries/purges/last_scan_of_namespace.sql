-- $1 uuid: namespace
-- $2 bigint: most Scans
SELECT min(create_time) AS create_time FROM (
    SELECT create_time FROM scans WHERE namespace_id = $1 ORDER BY create_time DESC LIMIT $2
) AS newest HAVING count(*) > 0
