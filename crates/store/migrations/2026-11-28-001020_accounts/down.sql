DROP TABLE audit_events, account_days, api_keys, accounts;
