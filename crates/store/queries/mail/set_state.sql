-- $1 uuid: namespace
-- $2 uuid: Connection
-- $3 bytea: digest of the address
-- $4 text: state
-- A row that has the state already counts as changed: a link may be followed twice. The reply of a server does not undo
-- what the recipient asked for. The lock makes the last two recipients who leave at once see each other.
WITH locked AS (
    SELECT FROM connections WHERE namespace_id = $1 AND id = $2 FOR NO KEY UPDATE
)
UPDATE mail_recipients SET state = $4,
    update_time = CASE state WHEN $4 THEN update_time ELSE clock_timestamp() END
WHERE namespace_id = $1 AND connection_id = $2 AND address_digest = $3
    AND ($4 <> 'REFUSED' OR state <> 'UNSUBSCRIBED') AND EXISTS (SELECT FROM locked)
