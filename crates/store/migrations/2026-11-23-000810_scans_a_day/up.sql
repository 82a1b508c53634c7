-- Scans of an account on a day (UTC): the counter of its quota. Written by the scanner as the last statement of the
-- transaction that makes Scans; purged by it after a month.
CREATE TABLE account_days (
    account_id uuid NOT NULL
        CONSTRAINT account_days_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
    day date NOT NULL,
    scans bigint NOT NULL,
    CONSTRAINT account_days_pkey PRIMARY KEY (account_id, day)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

ALTER TABLE accounts
    ADD COLUMN quota_scans_per_day integer
        CONSTRAINT accounts_quota_scans_per_day_check CHECK (quota_scans_per_day >= 0);
COMMENT ON COLUMN accounts.quota_scans_per_day IS 'NULL for the default, quotas.scans_per_day';

-- What a Manager missed because its account had used up its day. Written with the clock; a scanner turns it into
-- backfills when there is room again.
ALTER TABLE scan_clocks
    ADD COLUMN refused_since timestamptz,
    ADD COLUMN refused_time timestamptz;
CREATE INDEX scan_clocks_refused_idx ON scan_clocks (namespace_id, manager_id) WHERE refused_since IS NOT NULL;
COMMENT ON COLUMN scan_clocks.refused_since IS 'time of the oldest post that was refused; NULL if no post waits to be requested again';
COMMENT ON COLUMN scan_clocks.refused_time IS 'when a post was last refused';

ALTER TABLE backfills ADD COLUMN catch_up_since timestamptz;
COMMENT ON COLUMN backfills.catch_up_since IS 'posts from then on were refused by the quota of the account; the Manager''s own bound does not hold for them';
