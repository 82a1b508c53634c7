-- Services may have roles that own no table. What needs the owner goes through functions that run as the owner.
ALTER FUNCTION ensure_partitions(text, timestamptz, integer) SECURITY DEFINER;

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

-- A caller's temporary tables must not take the place of ours: pg_temp comes first where it is not named.
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION ensure_partitions(text, timestamptz, integer) SET search_path = %I, pg_temp', current_schema());
    EXECUTE format('ALTER FUNCTION drop_partition(text, text) SET search_path = %I, pg_temp', current_schema());
END
$$;
