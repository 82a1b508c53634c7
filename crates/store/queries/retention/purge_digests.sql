-- $1 uuid: first delivery that is kept
-- $2 timestamptz: before
-- $3 bigint: most rows of each kind
-- Scans that wait for a digest have no delivery. Those of disabled Connections are kept as long as deliveries that wait.
WITH headers AS (
    DELETE FROM digests WHERE delivery_id < $1
)
DELETE FROM digest_scans WHERE ctid = ANY (ARRAY (
    (SELECT ctid FROM digest_scans WHERE delivery_id < $1 ORDER BY delivery_id LIMIT $3)
    UNION ALL
    (SELECT old.ctid FROM connections AS c
    CROSS JOIN LATERAL (
        SELECT d.ctid FROM digest_scans AS d
        WHERE d.connection_id = c.id AND d.delivery_id IS NULL AND d.create_time < $2
        ORDER BY d.create_time LIMIT $3
    ) AS old
    WHERE c.state <> 'ACTIVE' LIMIT $3)))
