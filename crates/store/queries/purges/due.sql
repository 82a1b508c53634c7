-- $1 text[]: keys that are in hand
SELECT id, namespace_id, manager_id, connection_id, account_id FROM (
    SELECT *, row_number() OVER (PARTITION BY account_id ORDER BY next_time, id) AS rank FROM (
        SELECT p.*, coalesce(p.owner_id, n.account_id, p.namespace_id) AS account_id
        FROM purges AS p LEFT JOIN namespaces AS n ON n.id = p.namespace_id
        WHERE p.next_time NOT BETWEEN clock_timestamp() AND clock_timestamp() + interval '1 minute'
            AND p.id::text <> ALL ($1)
            AND NOT EXISTS (SELECT FROM leases AS l WHERE l.kind = 'purge' AND l.key = p.id::text
                AND l.leased_by IS NULL AND l.next_time > clock_timestamp())
    ) AS due
) AS ranked ORDER BY rank, next_time LIMIT 100
