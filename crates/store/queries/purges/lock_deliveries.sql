-- $1 uuid: namespace
-- $2 bigint: most deliveries
SELECT connection_id, create_time, id FROM deliveries WHERE namespace_id = $1
LIMIT $2 FOR UPDATE
