DROP TRIGGER namespaces_count_content ON namespaces;
DROP TRIGGER managers_count_content ON managers;
DROP FUNCTION count_namespace_content();
DROP FUNCTION count_manager_content();
DROP FUNCTION bytes_of_content(jsonb, jsonb, jsonb);
ALTER TABLE namespaces DROP COLUMN content_bytes;
ALTER TABLE managers DROP COLUMN content_bytes;
ALTER TABLE accounts DROP COLUMN quota_content_bytes;
