-- What addresses answered an account: whether they were asked to confirm, and whether they unsubscribed. It outlives Connections, so
-- that an owner cannot ask again through another one. The dispatcher writes requests, and the gateway what recipients decide.
CREATE TABLE account_mail_addresses (
    account_id uuid NOT NULL
        CONSTRAINT account_mail_addresses_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
    address_digest bytea NOT NULL,
    ask_time timestamptz,
    refuse_time timestamptz,
    CONSTRAINT account_mail_addresses_pkey PRIMARY KEY (account_id, address_digest)
);
CREATE INDEX account_mail_addresses_ask_time_idx ON account_mail_addresses (ask_time) WHERE refuse_time IS NULL;
COMMENT ON COLUMN account_mail_addresses.ask_time IS 'when the address was last asked to confirm, and has not done so since';
COMMENT ON COLUMN account_mail_addresses.refuse_time IS 'when the address unsubscribed from a Connection of the account';

INSERT INTO account_mail_addresses (account_id, address_digest, refuse_time)
SELECT n.account_id, r.address_digest, max(r.update_time)
FROM mail_recipients AS r JOIN namespaces AS n ON n.id = r.namespace_id
WHERE r.state = 'UNSUBSCRIBED' GROUP BY n.account_id, r.address_digest;
