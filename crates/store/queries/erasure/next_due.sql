-- $1 text: platform
SELECT extract(epoch FROM greatest(next_time - clock_timestamp(), interval '1 second'))::float8 AS seconds
FROM rechecks WHERE platform = $1
