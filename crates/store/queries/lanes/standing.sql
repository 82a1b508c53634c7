SELECT count(*) FILTER (WHERE open_until IS NOT NULL) AS open_breakers,
    count(*) FILTER (WHERE next_due_time <= statement_timestamp()) AS behind,
    coalesce(greatest(extract(epoch FROM statement_timestamp() - min(next_due_time)), 0), 0)::float8 AS seconds
FROM connection_lanes WHERE next_due_time IS NOT NULL OR open_until IS NOT NULL
