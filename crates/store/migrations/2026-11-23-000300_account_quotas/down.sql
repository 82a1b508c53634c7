ALTER TABLE accounts
    DROP COLUMN quota_managers,
    DROP COLUMN quota_connections,
    DROP COLUMN quota_feeds;
