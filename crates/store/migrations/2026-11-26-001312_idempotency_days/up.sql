-- How much each account has stored for Idempotency-Key on a UTC day. Written by the gateway with each stored response,
-- and purged by it.
CREATE TABLE idempotency_days (
    account_id uuid NOT NULL
        CONSTRAINT idempotency_days_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
    day date NOT NULL,
    bytes bigint NOT NULL,
    CONSTRAINT idempotency_days_pkey PRIMARY KEY (account_id, day)
) WITH (fillfactor = 50);
COMMENT ON COLUMN idempotency_days.bytes IS 'of the sealed responses, and some for each row';
