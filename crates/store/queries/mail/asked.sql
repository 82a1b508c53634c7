-- $1 uuid: namespace
-- $2 uuid: Connection
-- $3 bytea: digest of the address
-- $4 timestamptz: when it was asked
-- The account has asked, even if its owner has removed the recipient since.
WITH asked AS (
    UPDATE mail_recipients SET ask_time = $4
    WHERE namespace_id = $1 AND connection_id = $2 AND address_digest = $3
    RETURNING true
)
INSERT INTO account_mail_addresses (account_id, address_digest, ask_time)
SELECT n.account_id, $3, $4 FROM namespaces AS n LEFT JOIN asked ON true WHERE n.id = $1
ON CONFLICT (account_id, address_digest) DO UPDATE SET ask_time = excluded.ask_time
