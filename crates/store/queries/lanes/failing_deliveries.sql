-- $1 uuid: namespace
-- $2 uuid: Connection
-- $3 timestamptz: exhausted since
-- $4 bigint: most to count
SELECT count(*) AS count FROM (
    (SELECT FROM deliveries WHERE namespace_id = $1 AND connection_id = $2
        AND state IN ('PENDING', 'RETRYING') AND state = 'RETRYING' LIMIT $4)
    UNION ALL
    (SELECT FROM deliveries WHERE namespace_id = $1 AND connection_id = $2
        AND state = 'EXHAUSTED' AND update_time >= $3 LIMIT $4)
    LIMIT $4
) AS failing
