-- What each account may still spend in the minute with all its keys together. Written by api-gateway alone, in the
-- statement that writes rate_ledgers; one row an account, made by the first request of one of its keys. The rules are in
-- crates/store/src/rates/ledger.rs.
CREATE TABLE account_rate_ledgers (
    account_id uuid CONSTRAINT account_rate_ledgers_pkey PRIMARY KEY
        CONSTRAINT account_rate_ledgers_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
    ledger jsonb NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
COMMENT ON COLUMN account_rate_ledgers.ledger IS 'points that are leased or were spent, and until when each counts';

ALTER TABLE accounts
    ADD COLUMN quota_rate_limit_per_minute integer
        CONSTRAINT accounts_quota_rate_limit_per_minute_check CHECK (quota_rate_limit_per_minute >= 1);
COMMENT ON COLUMN accounts.quota_rate_limit_per_minute IS
    'request points of all keys together; NULL for the default, gateway.account_rate_limit_per_minute';
