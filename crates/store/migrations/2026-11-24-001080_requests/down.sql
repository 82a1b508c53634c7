DROP TABLE idempotency_keys, account_rate_ledgers, rate_ledgers;
