-- $1 double precision: shortest age in seconds
-- $2 uuid[]: Scans that are left out
-- $3 uuid[]: accounts that had a turn
-- $4 text: kind of the leases
-- $5 uuid: replica
-- $6 boolean: true if leases of silent replicas may be taken over
-- $7 bigint: most Scans
SELECT namespace_id, manager_id, id,
    (SELECT account_id FROM namespaces WHERE id = scans.namespace_id) AS account_id
FROM scans
WHERE NOT fanned_out
    AND (create_time < clock_timestamp() - $1 * interval '1 second'
        OR create_time > clock_timestamp() + interval '1 minute')
    AND id <> ALL ($2)
    AND namespace_id NOT IN (SELECT id FROM namespaces WHERE account_id = ANY ($3))
    AND NOT EXISTS (
        SELECT FROM leases AS l WHERE l.kind = $4 AND l.key = scans.id::text
            AND NOT ((l.leased_by IS NOT NULL OR l.next_time <= clock_timestamp())
                AND (l.leased_by IS NULL OR l.leased_by = $5 OR $6 AND NOT l.leased_by IN (SELECT id FROM replicas
                    WHERE heartbeat_time > clock_timestamp() - interval '4 seconds'))))
ORDER BY create_time LIMIT $7 FOR NO KEY UPDATE OF scans SKIP LOCKED
