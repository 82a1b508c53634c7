-- Functions that other migrations and queries call. Three of them create, drop and analyze tables: services may have
-- roles that own no table, so these run as the owner.

-- Weekly partitions of a table that is partitioned by time, Monday to Monday in UTC, named after the Monday. Called by
-- the migrations and by every service once an hour, also at the same time. A table is created first and attached then:
-- unlike creating it as a partition, this lets others read and write meanwhile. If the lock still takes too long, the
-- call fails, and the next one tries again.
CREATE FUNCTION ensure_partitions(parent text, from_time timestamptz, weeks integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET lock_timeout = '2s' AS $$
DECLARE
    monday timestamp;
    partition text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('earshot.ensure_partitions.' || parent));
    FOR week IN 0..weeks - 1 LOOP
        monday := date_trunc('week', from_time AT TIME ZONE 'UTC') + week * interval '7 days';
        partition := parent || to_char(monday, '"_"YYYYMMDD');
        IF to_regclass(partition) IS NULL THEN
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', partition, parent);
            EXECUTE format(
                'ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                parent, partition,
                monday AT TIME ZONE 'UTC', (monday + interval '7 days') AT TIME ZONE 'UTC'
            );
        END IF;
    END LOOP;
END
$$;

-- Drops one partition of a table that is partitioned by time. The caller decides that nothing in it is needed.
CREATE FUNCTION drop_partition(parent text, partition text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_inherits
        WHERE inhrelid = to_regclass(quote_ident(partition)) AND inhparent = to_regclass(quote_ident(parent))
        AND parent = ANY (ARRAY['posts', 'scans', 'deliveries', 'delivery_attempts'])
    ) THEN
        RAISE EXCEPTION '% is no partition of %', partition, parent;
    END IF;
    EXECUTE format('DROP TABLE %I', partition);
END
$$;
REVOKE EXECUTE ON FUNCTION drop_partition(text, text) FROM PUBLIC;

-- Analyzes the table that grew most since it was last analyzed or vacuumed, if one has grown fivefold, and returns its name.
-- Autovacuum does so within minutes. Until then, statements that were planned for an empty table, such as the partition of
-- a new week, use any index with their first column, and read all rows of a Namespace for each that they look for.
CREATE FUNCTION analyze_grown() RETURNS text
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    grown text;
BEGIN
    SELECT quote_ident(c.relname) INTO grown
    FROM pg_class AS c
    WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND pg_has_role(c.relowner, 'USAGE')
        AND pg_relation_size(c.oid) > (5 * c.relpages::bigint + 8) * current_setting('block_size')::integer
    ORDER BY pg_relation_size(c.oid) DESC LIMIT 1;
    IF grown IS NOT NULL THEN
        EXECUTE 'ANALYZE (SKIP_LOCKED) ' || grown;
    END IF;
    RETURN grown;
END
$$;
REVOKE EXECUTE ON FUNCTION analyze_grown() FROM PUBLIC;

-- A caller's temporary tables must not replace ours. PostgreSQL searches pg_temp first if the path does not name it.
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION ensure_partitions(text, timestamptz, integer) SET search_path = %I, pg_temp', current_schema());
    EXECUTE format('ALTER FUNCTION drop_partition(text, text) SET search_path = %I, pg_temp', current_schema());
    EXECUTE format('ALTER FUNCTION analyze_grown() SET search_path = %I, pg_temp', current_schema());
END
$$;

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

-- The creation time that an id carries (crates/domain/src/id.rs). With it a query finds the row in one partition.
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
