ALTER TABLE accounts DROP COLUMN quota_namespaces;
