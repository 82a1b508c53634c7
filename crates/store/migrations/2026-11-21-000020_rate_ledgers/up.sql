-- What each API key may still spend in the minute. Written by api-gateway alone, which leases points
-- from it in batches; one row a key, made by the key's first request. The rules are in
-- crates/store/src/rates/ledger.rs.
CREATE TABLE rate_ledgers (
    api_key_id uuid CONSTRAINT rate_ledgers_pkey PRIMARY KEY
        CONSTRAINT rate_ledgers_api_key_fkey REFERENCES api_keys (id) ON DELETE CASCADE,
    ledger jsonb NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
COMMENT ON COLUMN rate_ledgers.ledger IS 'points that are leased or were spent, and until when each counts';
