-- $1 bigint: most digests
-- A cancelled delivery gives the Scans back that are not the reason: the next digest has them.
WITH ended AS (
    SELECT g.delivery_id, d.state, d.last_error, d.scan_id FROM digests AS g
    CROSS JOIN LATERAL (
        SELECT d.state, d.last_error, d.scan_id FROM deliveries AS d
        WHERE d.namespace_id = g.namespace_id AND d.connection_id = g.connection_id
            AND d.create_time = id_time(g.delivery_id) AND d.id = g.delivery_id OFFSET 0
    ) AS d
    WHERE d.state IN ('SUCCEEDED', 'EXHAUSTED', 'CANCELLED') LIMIT $1 FOR UPDATE OF g SKIP LOCKED
), given_back AS (
    UPDATE digest_scans AS s SET delivery_id = NULL FROM ended AS e
    WHERE s.delivery_id = e.delivery_id AND e.state = 'CANCELLED' AND e.last_error IN ('post_deleted', 'scan_deleted')
        AND s.scan_id <> e.scan_id
)
DELETE FROM digests AS g USING ended AS e WHERE g.delivery_id = e.delivery_id
