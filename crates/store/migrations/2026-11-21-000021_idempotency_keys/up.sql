-- First answers of requests with an `Idempotency-Key`, by which the same request again gets the same
-- answer for a day. Written by api-gateway in the transaction that the answer is of; purged by it, a
-- bounded number of rows at a time, when they are older than that.
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
