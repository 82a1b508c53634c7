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

DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION analyze_grown() SET search_path = %I, pg_temp', current_schema());
END
$$;
