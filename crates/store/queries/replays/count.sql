-- $1 uuid: namespace
-- $2 uuid: Connection
-- $3 uuid: id
-- $4 timestamptz: start of the window
-- $5 timestamptz: end of the window
-- $6 text[]: states of the deliveries
UPDATE replays SET total = (
    SELECT count(*) FROM deliveries WHERE namespace_id = $1 AND connection_id = $2
        AND create_time BETWEEN $4 AND $5 AND state = ANY ($6))
WHERE namespace_id = $1 AND connection_id = $2 AND id = $3
