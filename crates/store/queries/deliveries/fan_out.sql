-- $1 uuid[]: namespaces
-- $2 uuid[]: Managers
-- $3 timestamptz[]: create_time of each Scan
-- $4 uuid[]: ids
WITH marked AS (
    -- The planner often expects no Scan without deliveries, and would read that index instead of finding a Scan by its
    -- key; IS NOT TRUE prevents that.
    UPDATE scans AS s SET fanned_out = true
    FROM unnest($1, $2, $3, $4) AS given (namespace_id, manager_id, create_time, id)
    WHERE s.namespace_id = given.namespace_id AND s.manager_id = given.manager_id
        AND s.create_time = given.create_time AND s.id = given.id AND s.fanned_out IS NOT TRUE
    RETURNING s.namespace_id, s.manager_id, s.id, s.post_id, s.post_receive_time
)
SELECT m.namespace_id, m.manager_id, m.id AS scan_id, c.id AS connection_id, l.account_id,
    c.state = 'ACTIVE' AND l.open_until IS NULL
        AND CASE c.format WHEN 'DISCORD' THEN 28 ELSE coalesce(c.max_per_second * 60,
            CASE c.format WHEN 'SLACK' THEN 60 WHEN 'TEAMS' THEN 240 END) END IS NULL
        AND coalesce(l.next_due_time > statement_timestamp(), true) AS clear,
    c.state = 'ACTIVE' AND coalesce(l.open_until <= statement_timestamp(), true) AS due,
    l.open_until IS NOT NULL
        OR CASE c.format WHEN 'DISCORD' THEN 28 ELSE coalesce(c.max_per_second * 60,
            CASE c.format WHEN 'SLACK' THEN 60 WHEN 'TEAMS' THEN 240 END) END IS NOT NULL AS restrained,
    p.erase_time IS NOT NULL AS erased, c.format = 'EMAIL' AND c.digest IS NOT NULL AS is_gathered, n.filter,
    c.url AS connection_url, c.url_sealed, c.update_time AS connection_update_time, c.method, c.headers_sealed,
    c.format, c.max_per_second, c.signing_secrets_sealed,
    m.post_id, m.post_receive_time,
    coalesce(octet_length(p.title), 0) + coalesce(octet_length(p.text), 0) AS post_bytes
FROM marked AS m
-- Posts are looked up one by one: without statistics the planner would read all of them for each Scan.
CROSS JOIN LATERAL (
    SELECT title, text, erase_time FROM posts WHERE receive_time = m.post_receive_time AND id = m.post_id LIMIT 1
) AS p
JOIN manager_notices AS n ON n.namespace_id = m.namespace_id AND n.manager_id = m.manager_id
JOIN connections AS c ON c.namespace_id = n.namespace_id AND c.id = n.connection_id
JOIN connection_lanes AS l ON l.namespace_id = c.namespace_id AND l.connection_id = c.id
ORDER BY m.id, n.position
