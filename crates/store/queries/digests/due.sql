-- $1 text[]: keys that are in hand
-- One step of the index for each Connection that gathers, regardless of how many Scans it has.
WITH RECURSIVE one AS (
    (SELECT namespace_id, connection_id, create_time FROM digest_scans WHERE delivery_id IS NULL
     ORDER BY connection_id, create_time LIMIT 1)
    UNION ALL
    SELECT next.* FROM one CROSS JOIN LATERAL (
        SELECT namespace_id, connection_id, create_time FROM digest_scans
        WHERE delivery_id IS NULL AND connection_id > one.connection_id
        ORDER BY connection_id, create_time LIMIT 1
    ) AS next
)
SELECT namespace_id, connection_id, account_id FROM (
    SELECT one.*, n.account_id, row_number() OVER (PARTITION BY n.account_id ORDER BY one.create_time) AS rank
    FROM one
    JOIN connections AS c ON c.namespace_id = one.namespace_id AND c.id = one.connection_id
    JOIN namespaces AS n ON n.id = one.namespace_id
    -- What is left when its owner ends the digests is sent at once. Fan-outs that began within the period have fifteen
    -- seconds to commit. A disabled Connection gets one digest of everything when it is enabled.
    WHERE c.state = 'ACTIVE' AND (c.digest IS NULL OR one.create_time
            < digest_period_begin(c.digest, statement_timestamp() - interval '15 seconds', c.time_zone))
        AND one.connection_id::text <> ALL ($1)
        AND NOT EXISTS (SELECT FROM leases AS l WHERE l.kind = 'digest' AND l.key = one.connection_id::text
            AND l.leased_by IS NULL AND l.next_time > clock_timestamp())
) AS due ORDER BY rank, create_time LIMIT 100
