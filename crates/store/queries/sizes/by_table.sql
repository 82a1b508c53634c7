SELECT coalesce(parent.relname, own.relname)::text AS "table",
    coalesce(sum(pg_total_relation_size(own.oid)), 0)::bigint AS bytes
FROM pg_class AS own LEFT JOIN pg_inherits AS i ON i.inhrelid = own.oid
LEFT JOIN pg_class AS parent ON parent.oid = i.inhparent
WHERE own.relkind = 'r' AND own.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'feeds'::regclass)
GROUP BY 1 ORDER BY 1
