DROP FUNCTION drop_partition(text, text);
ALTER FUNCTION ensure_partitions(text, timestamptz, integer) SECURITY INVOKER;
ALTER FUNCTION ensure_partitions(text, timestamptz, integer) RESET search_path;
