-- $1 bigint: entry
-- No writer's transaction lasts ten minutes.
WITH settled AS (
    DELETE FROM purges WHERE id = $1 AND create_time < clock_timestamp() - interval '10 minutes' RETURNING id
) UPDATE purges SET next_time = clock_timestamp() + interval '30 seconds'
WHERE id = $1 AND NOT EXISTS (SELECT FROM settled)
