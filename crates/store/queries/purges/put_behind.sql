-- $1 bigint: entry
UPDATE purges SET next_time = clock_timestamp() WHERE id = $1
