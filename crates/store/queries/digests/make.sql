-- $1 uuid: namespace
-- $2 uuid: Connection
-- $3 uuid: id of the delivery
-- $4 timestamptz: its create_time
WITH period AS (
    SELECT CASE WHEN digest IS NULL THEN 'infinity'::timestamptz
        ELSE digest_period_begin(digest, statement_timestamp() - interval '15 seconds', time_zone) END AS end_time
    -- Waits for a deletion, and then finds nothing.
    FROM connections WHERE namespace_id = $1 AND id = $2 FOR KEY SHARE
), due AS (
    SELECT d.ctid FROM digest_scans AS d
    WHERE d.namespace_id = $1 AND d.connection_id = $2 AND d.delivery_id IS NULL
        AND d.create_time < (SELECT end_time FROM period)
    -- The others are still due afterwards, and get another digest.
    ORDER BY d.create_time LIMIT 20000 FOR UPDATE OF d
), taken AS (
    -- By ctid: no plan compares each row with each other, also before the table was analyzed.
    UPDATE digest_scans AS d SET delivery_id = $3 WHERE d.ctid = ANY (ARRAY(SELECT ctid FROM due))
    RETURNING d.manager_id, d.scan_id
), newest AS (
    -- A delivery names one Scan, and is cancelled when that or its post is deleted: one that still exists.
    SELECT t.manager_id, t.scan_id FROM taken AS t
    JOIN managers AS m ON m.namespace_id = $1 AND m.id = t.manager_id
    CROSS JOIN LATERAL (
        SELECT s.post_receive_time, s.post_id FROM scans AS s
        WHERE s.namespace_id = $1 AND s.manager_id = t.manager_id
            AND s.create_time = id_time(t.scan_id) AND s.id = t.scan_id OFFSET 0
    ) AS s
    CROSS JOIN LATERAL (
        SELECT p.erase_time FROM posts AS p WHERE p.receive_time = s.post_receive_time AND p.id = s.post_id OFFSET 0
    ) AS p
    WHERE p.erase_time IS NULL ORDER BY t.scan_id DESC LIMIT 1
), header AS (
    INSERT INTO digests (delivery_id, namespace_id, connection_id) SELECT $3, $1, $2 FROM newest
)
INSERT INTO deliveries (namespace_id, connection_id, id, create_time, update_time, manager_id, scan_id, state,
    next_attempt_time)
SELECT $1, $2, $3, $4, clock_timestamp(), manager_id, scan_id, 'PENDING', clock_timestamp() FROM newest
