DROP TABLE idempotency_days;
