ALTER TABLE accounts DROP COLUMN quota_rate_limit_per_minute;
DROP TABLE account_rate_ledgers;
