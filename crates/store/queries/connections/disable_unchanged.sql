-- $1 uuid: namespace
-- $2 uuid: Connection
-- $3 text: reason
-- $4 timestamptz: now
-- $5 timestamptz: update_time when its endpoint was called
WITH off AS (
    UPDATE connections SET state = 'DISABLED', state_reason = $3, update_time = $4
    WHERE namespace_id = $1 AND id = $2 AND state = 'ACTIVE' AND update_time = $5 RETURNING nickname
)
SELECT (SELECT nickname FROM off) AS off,
    EXISTS (SELECT FROM connections WHERE namespace_id = $1 AND id = $2 AND state = 'ACTIVE') AS active
