-- $1 uuid: namespace
-- $2 uuid: Connection
-- $3 uuid: id
-- $4 timestamptz: create_time of the last delivery read
-- $5 uuid: its id
-- $6 timestamptz: end of the window
-- $7 text[]: states of the deliveries
-- $8 bigint: most deliveries to read
-- $9 bigint: most deliveries to reopen
-- $10 double precision: seconds between two batches of the account
WITH chosen AS MATERIALIZED (
    SELECT create_time, id FROM (
        SELECT create_time, id, state FROM deliveries
        WHERE namespace_id = $1 AND connection_id = $2 AND (create_time, id) > ($4, $5) AND create_time <= $6
        ORDER BY create_time, id LIMIT $8
    ) AS page WHERE state = ANY ($7) ORDER BY create_time, id LIMIT $9
), sent AS (
    -- Sets the same as `deliveries/reopen`, apart from `urgent`.
    UPDATE deliveries AS d SET urgent = false,
        state = CASE d.state WHEN 'IN_FLIGHT' THEN d.state ELSE 'PENDING' END,
        next_attempt_time = CASE d.state WHEN 'IN_FLIGHT' THEN NULL ELSE clock_timestamp() END,
        reopen_asked = d.state = 'IN_FLIGHT', reopen_time = clock_timestamp(),
        schedule_base = d.attempt_count, update_time = clock_timestamp()
    FROM chosen AS c WHERE d.namespace_id = $1 AND d.connection_id = $2
        AND d.create_time = c.create_time AND d.id = c.id
        AND (d.event IS NOT NULL
            OR EXISTS (SELECT FROM scans AS s WHERE s.namespace_id = d.namespace_id AND s.manager_id = d.manager_id
                AND s.create_time = id_time(d.scan_id) AND s.id = d.scan_id))
), counts AS (
    SELECT count(*) AS chosen FROM chosen
), seen AS MATERIALIZED (
    SELECT page.* FROM counts AS n CROSS JOIN LATERAL (
        SELECT create_time, id FROM deliveries
        WHERE n.chosen < $9 AND namespace_id = $1 AND connection_id = $2
            AND (create_time, id) > ($4, $5) AND create_time <= $6
        ORDER BY create_time, id LIMIT $8
    ) AS page
), place AS (
    (SELECT create_time, id FROM chosen, counts AS n WHERE n.chosen = $9 ORDER BY create_time DESC, id DESC LIMIT 1)
    UNION ALL
    (SELECT create_time, id FROM seen ORDER BY create_time DESC, id DESC LIMIT 1)
), moved AS (
    SELECT n.chosen, n.chosen < $9 AND (SELECT count(*) FROM seen) < $8 AS done FROM counts AS n
), sharing AS (
    SELECT greatest(1, count(*)) AS replays FROM replays AS o JOIN connections AS c
        ON c.namespace_id = o.namespace_id AND c.id = o.connection_id AND c.state = 'ACTIVE'
    WHERE o.state = 'RUNNING' AND o.counted AND o.namespace_id IN (
        SELECT id FROM namespaces WHERE account_id = (SELECT account_id FROM namespaces WHERE id = $1))
)
UPDATE replays AS r SET done = r.done + m.chosen, update_time = clock_timestamp(),
    place_time = coalesce((SELECT create_time FROM place), r.place_time),
    place_id = coalesce((SELECT id FROM place), r.place_id),
    state = CASE WHEN m.done THEN 'DONE' ELSE r.state END,
    total = CASE WHEN m.done THEN r.done + m.chosen ELSE greatest(r.total, r.done + m.chosen) END,
    next_batch_time = clock_timestamp()
        + CASE WHEN m.chosen > 0 THEN $10 * s.replays ELSE 0 END * interval '1 second'
FROM moved AS m, sharing AS s WHERE r.namespace_id = $1 AND r.connection_id = $2 AND r.id = $3
RETURNING m.chosen, m.done
