-- $1 uuid: first delivery that is kept
-- $2 timestamptz: before
-- $3 bigint: most rows of each kind
-- Scans that wait for a digest have no delivery. Those of disabled Connections are kept as long as deliveries that wait, as
-- are those of deleted Connections that purges did not find. One step of the index for each Connection that gathers.
WITH RECURSIVE one AS (
    (SELECT namespace_id, connection_id FROM digest_scans WHERE delivery_id IS NULL
     ORDER BY connection_id, create_time LIMIT 1)
    UNION ALL
    SELECT next.* FROM one CROSS JOIN LATERAL (
        SELECT namespace_id, connection_id FROM digest_scans
        WHERE delivery_id IS NULL AND connection_id > one.connection_id
        ORDER BY connection_id, create_time LIMIT 1
    ) AS next
), headers AS (
    DELETE FROM digests WHERE delivery_id < $1
)
DELETE FROM digest_scans WHERE ctid = ANY (ARRAY (
    (SELECT ctid FROM digest_scans WHERE delivery_id < $1 ORDER BY delivery_id LIMIT $3)
    UNION ALL
    (SELECT old.ctid FROM one
    CROSS JOIN LATERAL (
        SELECT d.ctid FROM digest_scans AS d
        WHERE d.connection_id = one.connection_id AND d.delivery_id IS NULL AND d.create_time < $2
        ORDER BY d.create_time LIMIT $3
    ) AS old
    WHERE NOT EXISTS (SELECT FROM connections AS c
        WHERE c.namespace_id = one.namespace_id AND c.id = one.connection_id AND c.state = 'ACTIVE')
    LIMIT $3)))
