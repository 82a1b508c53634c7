-- $1 text: table
SELECT ensure_partitions($1, clock_timestamp() - interval '7 days', 6)
