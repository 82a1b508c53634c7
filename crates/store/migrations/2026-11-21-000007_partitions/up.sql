-- Weeks of the tables that are partitioned by time, Monday to Monday in UTC, named by the Monday.
-- Called by `earshot migrate` and by every service once an hour; any number may call at once.
CREATE FUNCTION ensure_partitions(from_time timestamptz, weeks integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    parent text;
    monday timestamp;
    partition text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('earshot.ensure_partitions'));
    FOREACH parent IN ARRAY ARRAY['posts', 'scans', 'deliveries', 'delivery_attempts'] LOOP
        FOR week IN 0..weeks - 1 LOOP
            monday := date_trunc('week', from_time AT TIME ZONE 'UTC') + week * interval '7 days';
            partition := parent || to_char(monday, '"_"YYYYMMDD');
            IF to_regclass(partition) IS NULL THEN
                EXECUTE format(
                    'CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)',
                    partition, parent,
                    monday AT TIME ZONE 'UTC', (monday + interval '7 days') AT TIME ZONE 'UTC'
                );
            END IF;
        END LOOP;
    END LOOP;
END
$$;
SELECT ensure_partitions(clock_timestamp() - interval '7 days', 6);
