-- $1 uuid: namespace
-- $2 uuid: Manager
-- $3 uuid: Connection
INSERT INTO purges (namespace_id, manager_id, connection_id, owner_id)
VALUES ($1, $2, $3, (SELECT account_id FROM namespaces WHERE id = $1))
