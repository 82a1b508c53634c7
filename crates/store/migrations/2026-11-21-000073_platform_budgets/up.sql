-- What may be asked of a platform under one credential, all replicas of the scanner together. Written by
-- the scanner, which leases points as the gateway does (crates/store/src/rates/ledger.rs); one row a
-- credential.
CREATE TABLE platform_budgets (
    credential text CONSTRAINT platform_budgets_pkey PRIMARY KEY,
    ledger jsonb NOT NULL DEFAULT '{"leases": [], "spent": []}',
    silent_until timestamptz,
    day date,
    day_posts integer NOT NULL DEFAULT 0
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
COMMENT ON COLUMN platform_budgets.credential IS 'the kind of platform, its host, and a hash of who asks';
COMMENT ON COLUMN platform_budgets.ledger IS 'requests that are leased or were made, and until when each counts';
COMMENT ON COLUMN platform_budgets.silent_until IS 'the platform said that nothing is left until then';
COMMENT ON COLUMN platform_budgets.day IS 'the UTC day of day_posts: posts that are paid for singly, taken that day';
