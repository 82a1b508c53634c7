DROP TABLE rate_ledgers;
