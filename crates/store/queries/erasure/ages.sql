SELECT platform, greatest(extract(epoch FROM clock_timestamp() - begin_time), 0)::float8 AS seconds
FROM rechecks
