-- $1 bytea: digest of the address
-- $2 double precision: seconds until the address may be asked
UPDATE mail_addresses SET ask_time = clock_timestamp() - interval '1 day' + $2 * interval '1 second' WHERE address_digest = $1
