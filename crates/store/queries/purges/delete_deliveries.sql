-- $1 uuid: namespace
-- $2 uuid[]: connection_id
-- $3 timestamptz[]: create_time
-- $4 uuid[]: id
DELETE FROM deliveries AS d USING unnest($2, $3, $4) AS key (connection_id, create_time, id)
WHERE d.namespace_id = $1 AND d.connection_id = key.connection_id
    AND d.create_time = key.create_time AND d.id = key.id
