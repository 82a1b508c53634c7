DROP TABLE idempotency_days, idempotency_keys, account_rate_ledgers, rate_ledgers;
