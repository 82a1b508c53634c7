-- $1 uuid: namespace
-- $2 uuid: Connection
-- $3 bytea[]: digests of the addresses
-- A recipient who unsubscribed stays known, so that the owner cannot ask again by removing and adding the address.
WITH removed AS (
    DELETE FROM mail_recipients
    WHERE namespace_id = $1 AND connection_id = $2 AND address_digest <> ALL ($3) AND state <> 'UNSUBSCRIBED'
)
INSERT INTO mail_recipients AS r (namespace_id, connection_id, address_digest, state, update_time)
SELECT $1, $2, address_digest, 'PENDING', clock_timestamp() FROM unnest($3) AS given (address_digest)
ON CONFLICT (namespace_id, connection_id, address_digest) DO UPDATE
    SET state = 'PENDING', update_time = clock_timestamp(),
        ask_time = CASE WHEN r.state = 'PENDING' AND r.ask_time > clock_timestamp() - interval '7 days' THEN r.ask_time END
    WHERE r.state IN ('PENDING', 'REFUSED')
