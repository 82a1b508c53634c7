DROP TABLE plan_changes, plan_version, manager_notices, manager_verdicts, managers, connections, namespaces;
DROP FUNCTION count_namespace_content();
DROP FUNCTION count_manager_content();
DROP FUNCTION bytes_of_content(jsonb, jsonb, jsonb);
