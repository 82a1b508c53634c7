-- $1 bigint: most to count
SELECT clock_timestamp() AS now, waiting.*, in_flight.*
FROM (
    SELECT count(*) FILTER (WHERE state = 'PENDING') AS pending,
        count(*) FILTER (WHERE state = 'RETRYING') AS retrying,
        count(*) FILTER (WHERE next_attempt_time <= statement_timestamp()) AS due
    FROM (SELECT state, next_attempt_time FROM deliveries WHERE state IN ('PENDING', 'RETRYING') LIMIT $1) AS w
) AS waiting, (
    SELECT count(*) AS in_flight
    FROM (SELECT FROM deliveries WHERE state = 'IN_FLIGHT' LIMIT $1) AS open
) AS in_flight
