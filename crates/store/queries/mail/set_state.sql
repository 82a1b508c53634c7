-- $1 uuid: namespace
-- $2 uuid: Connection
-- $3 bytea: digest of the address
-- $4 text: state
-- A row that has the state already counts as changed: a link may be followed twice.
UPDATE mail_recipients SET state = $4,
    update_time = CASE state WHEN $4 THEN update_time ELSE clock_timestamp() END
WHERE namespace_id = $1 AND connection_id = $2 AND address_digest = $3
