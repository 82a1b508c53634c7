-- $1 bigint: most events
-- $2 bigint[]: left out
-- $3 bigint: most deliveries of several events
WITH due AS (
    SELECT id, (SELECT count(*) FROM connections AS c
            WHERE c.namespace_id = e.namespace_id AND c.events <> '{}' AND e.event_type = ANY (c.events)) AS receivers
    FROM service_events AS e WHERE id <> ALL ($2) ORDER BY id LIMIT $1
)
SELECT id FROM (SELECT id, receivers, sum(receivers) OVER (ORDER BY id) AS deliveries FROM due) AS summed
WHERE deliveries <= $3 OR deliveries = receivers
ORDER BY id
