-- $1 uuid: namespace
-- $2 bytea: digest of the address
INSERT INTO account_mail_addresses AS a (account_id, address_digest, refuse_time)
SELECT account_id, $2, clock_timestamp() FROM namespaces WHERE id = $1
ON CONFLICT (account_id, address_digest) DO UPDATE SET refuse_time = coalesce(a.refuse_time, excluded.refuse_time)
