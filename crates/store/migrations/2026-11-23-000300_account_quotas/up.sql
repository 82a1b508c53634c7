-- Quotas of single accounts. Written by `earshot accounts set-quota`. The gateway and the compiler read them, and
-- lock the account's row while they check one. The table is small, so the change is quick.
ALTER TABLE accounts
    ADD COLUMN quota_managers integer CONSTRAINT accounts_quota_managers_check CHECK (quota_managers >= 0),
    ADD COLUMN quota_connections integer CONSTRAINT accounts_quota_connections_check CHECK (quota_connections >= 0),
    ADD COLUMN quota_feeds integer CONSTRAINT accounts_quota_feeds_check CHECK (quota_feeds >= 0);
COMMENT ON COLUMN accounts.quota_managers IS 'NULL for the default, quotas.managers';
COMMENT ON COLUMN accounts.quota_connections IS 'NULL for the default, quotas.connections';
COMMENT ON COLUMN accounts.quota_feeds IS 'distinct feeds of enabled Managers; NULL for the default, quotas.feeds';
