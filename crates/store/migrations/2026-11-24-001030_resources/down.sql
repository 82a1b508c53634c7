DROP TABLE plan_changes, plan_version, manager_notices, managers, connections, namespaces;
