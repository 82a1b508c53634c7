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

-- The text of an id as clients see it, for lists that filter by name and for people with psql.
CREATE FUNCTION ulid(id uuid) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT string_agg(
        substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + substring(bits FROM 5 * place + 1 FOR 5)::bit(5)::integer, 1),
        '' ORDER BY place
    )
    FROM (SELECT B'00' || ('x' || replace(id::text, '-', ''))::bit(128) AS bits) AS whole,
         generate_series(0, 25) AS place
$$;

-- The creation time that an id carries (crates/domain/src/id.rs), by which its row is found in one
-- partition.
CREATE FUNCTION id_time(id uuid) RETURNS timestamptz
LANGUAGE sql STABLE STRICT PARALLEL SAFE AS $$
    -- Whole seconds and the rest apart: each product is exact in the float that intervals multiply by.
    SELECT 'epoch'::timestamptz + millis / 1000 * interval '1 second'
        + (millis % 1000 * 1000 + micros) * interval '1 microsecond'
    FROM replace(id::text, '-', '') AS hex,
        LATERAL (
            SELECT ('x' || substr(hex, 1, 12))::bit(48)::bigint, (('x' || substr(hex, 13, 3))::bit(12) >> 2)::integer
        ) AS parts (millis, micros)
$$;
