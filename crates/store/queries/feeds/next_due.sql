-- $1 text: platform
-- $2 uuid: replica
-- $3 text[]: names that the replica has in hand or has postponed
-- $4 boolean: true if leases of silent replicas may be taken over
-- $5 bigint: free capacity for quick feeds
-- $6 bigint: free capacity for slow feeds
SELECT extract(epoch FROM min(next_poll_time) - clock_timestamp())::float8 AS seconds FROM (
    SELECT next_poll_time FROM (
        -- Leased feeds, and slow feeds without capacity for them, may come first. A literal limit, which the planner
        -- knows.
        SELECT * FROM feeds WHERE watched AND platform = $1 AND next_poll_time > statement_timestamp()
        ORDER BY next_poll_time LIMIT 1000
    ) AS feeds
    WHERE name <> ALL ($3)
        AND (leased_by IS NULL OR leased_by = $2 OR $4 AND NOT leased_by IN (SELECT id FROM replicas
            WHERE heartbeat_time > clock_timestamp() - interval '4 seconds'))
        AND leased_by IS DISTINCT FROM $2 AND CASE WHEN slow THEN $6 ELSE $5 END > 0
    ORDER BY next_poll_time LIMIT 1
) AS next
