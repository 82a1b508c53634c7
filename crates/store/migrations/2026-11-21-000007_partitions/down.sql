DROP FUNCTION ensure_partitions(timestamptz, integer);
