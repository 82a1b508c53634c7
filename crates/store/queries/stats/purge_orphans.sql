-- $1 bigint: most points
WITH RECURSIVE known AS (
    (SELECT namespace_id FROM stats ORDER BY namespace_id LIMIT 1)
    UNION ALL
    SELECT (SELECT s.namespace_id FROM stats AS s WHERE s.namespace_id > known.namespace_id
            ORDER BY s.namespace_id LIMIT 1)
    FROM known WHERE known.namespace_id IS NOT NULL
)
DELETE FROM stats WHERE ctid = ANY (ARRAY(
    SELECT s.ctid FROM known CROSS JOIN LATERAL (
        SELECT ctid FROM stats WHERE namespace_id = known.namespace_id LIMIT $1
    ) AS s
    WHERE NOT EXISTS (SELECT FROM namespaces AS n WHERE n.id = known.namespace_id) LIMIT $1))
