-- $1 uuid: namespace
-- $2 uuid: Connection
-- $3 bigint: most to count
SELECT EXISTS (SELECT FROM connections WHERE namespace_id = $1 AND id = $2 AND state = 'ACTIVE') AS active,
    (SELECT count(*) FROM (SELECT FROM deliveries WHERE namespace_id = $1 AND connection_id = $2
        AND state IN ('PENDING', 'RETRYING') AND next_attempt_time <= clock_timestamp() LIMIT $3) AS due
    ) AS waiting
