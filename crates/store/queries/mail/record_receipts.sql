-- $1 uuid: delivery
-- $2 bytea[]: digests of the addresses
-- A recipient who got it before it was reopened has a row already.
INSERT INTO mail_receipts (delivery_id, address_digest, time)
SELECT $1, digest, clock_timestamp() FROM unnest($2) AS digest
ON CONFLICT (delivery_id, address_digest) DO UPDATE SET time = excluded.time
