DROP FUNCTION id_time(uuid);
DROP FUNCTION ulid(uuid);
DROP FUNCTION analyze_grown();
DROP FUNCTION drop_partition(text, text);
DROP FUNCTION ensure_partitions(text, timestamptz, integer);
