-- Rate limits and idempotency of API requests. Written by api-gateway alone.

-- What each API key may still spend in the minute. Gateways lease points from it in batches. One row per key, inserted
-- by the key's first request. The rules are in crates/store/src/rates/ledger.rs.
CREATE TABLE rate_ledgers (
    api_key_id uuid CONSTRAINT rate_ledgers_pkey PRIMARY KEY
        CONSTRAINT rate_ledgers_api_key_fkey REFERENCES api_keys (id) ON DELETE CASCADE,
    ledger jsonb NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
COMMENT ON COLUMN rate_ledgers.ledger IS 'points that are leased or were spent, and until when each counts';

-- What each account may still spend in the minute with all its keys together. Written in the statement that writes
-- rate_ledgers. One row per account, inserted by the first request of one of its keys.
CREATE TABLE account_rate_ledgers (
    account_id uuid CONSTRAINT account_rate_ledgers_pkey PRIMARY KEY
        CONSTRAINT account_rate_ledgers_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
    ledger jsonb NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
COMMENT ON COLUMN account_rate_ledgers.ledger IS 'points that are leased or were spent, and until when each counts';

-- First answers to requests with an `Idempotency-Key`. For a day, the same request gets the same answer. Written in the
-- transaction of the request; old rows are deleted in batches.
CREATE TABLE idempotency_keys (
    api_key_id uuid NOT NULL
        CONSTRAINT idempotency_keys_api_key_fkey REFERENCES api_keys (id) ON DELETE CASCADE,
    request_hash bytea NOT NULL
        CONSTRAINT idempotency_keys_request_hash_check CHECK (octet_length(request_hash) = 32),
    answer bytea,
    create_time timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT idempotency_keys_pkey PRIMARY KEY (api_key_id, request_hash)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
CREATE INDEX idempotency_keys_create_time_idx ON idempotency_keys (create_time);
COMMENT ON COLUMN idempotency_keys.request_hash IS 'SHA-256 of path and Idempotency-Key';
COMMENT ON COLUMN idempotency_keys.answer IS 'the answer and the hash of the body it answers, sealed; null only inside of the transaction that makes it';

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
