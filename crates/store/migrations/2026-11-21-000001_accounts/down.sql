DROP TABLE api_keys, accounts;
