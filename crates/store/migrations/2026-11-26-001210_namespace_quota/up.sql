-- A quota of Namespaces for each account. Written by `earshot accounts set-quota`.
ALTER TABLE accounts
    ADD COLUMN quota_namespaces integer,
    ADD CONSTRAINT accounts_quota_namespaces_check CHECK (quota_namespaces BETWEEN 0 AND 10000) NOT VALID;
COMMENT ON COLUMN accounts.quota_namespaces IS 'NULL for the default, quotas.namespaces';
