-- E-mail: a Connection with the format EMAIL, and which of its recipients want mail. The gateway writes recipients with their
-- Connection and when they follow a link in a mail; the dispatcher asks them to confirm, and marks those that their server refuses.
ALTER TABLE connections
    DROP CONSTRAINT connections_format_check,
    ADD CONSTRAINT connections_format_check
        CHECK (format IN ('EARSHOT', 'SLACK', 'DISCORD', 'TEAMS', 'EMAIL')) NOT VALID;

CREATE TABLE mail_recipients (
    namespace_id uuid NOT NULL,
    connection_id uuid NOT NULL,
    address_digest bytea NOT NULL CONSTRAINT mail_recipients_address_digest_check CHECK (length(address_digest) = 32),
    state text NOT NULL
        CONSTRAINT mail_recipients_state_check CHECK (state IN ('PENDING', 'CONFIRMED', 'UNSUBSCRIBED', 'REFUSED')),
    ask_time timestamptz,
    update_time timestamptz NOT NULL,
    CONSTRAINT mail_recipients_pkey PRIMARY KEY (namespace_id, connection_id, address_digest),
    CONSTRAINT mail_recipients_connection_fkey FOREIGN KEY (namespace_id, connection_id)
        REFERENCES connections (namespace_id, id) ON DELETE CASCADE
);
CREATE INDEX mail_recipients_to_ask_idx ON mail_recipients (update_time) WHERE state = 'PENDING' AND ask_time IS NULL;
COMMENT ON COLUMN mail_recipients.address_digest IS
    'SHA-256 of the address in lower case; the address itself is sealed with its Connection';
COMMENT ON COLUMN mail_recipients.ask_time IS 'when the recipient was asked to confirm the address; NULL if that is still to be done';

-- Requests to confirm, of all accounts: an address gets one a day. The dispatcher writes it, and removes old rows.
CREATE TABLE mail_addresses (
    address_digest bytea NOT NULL CONSTRAINT mail_addresses_pkey PRIMARY KEY,
    account_id uuid NOT NULL,
    ask_time timestamptz NOT NULL
);
CREATE INDEX mail_addresses_account_idx ON mail_addresses (account_id, ask_time);
CREATE INDEX mail_addresses_ask_time_idx ON mail_addresses (ask_time);
COMMENT ON COLUMN mail_addresses.account_id IS 'the account of the Connection that the last request was for';

-- Mails of deliveries that take several attempts, because the server of another recipient did not accept its mail. The dispatcher
-- writes it, and removes old rows.
CREATE TABLE mail_receipts (
    delivery_id uuid NOT NULL,
    address_digest bytea NOT NULL,
    time timestamptz NOT NULL,
    CONSTRAINT mail_receipts_pkey PRIMARY KEY (delivery_id, address_digest)
);
CREATE INDEX mail_receipts_time_idx ON mail_receipts (time);
