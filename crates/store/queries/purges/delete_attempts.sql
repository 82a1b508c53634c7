-- $1 uuid[]: deliveries
DELETE FROM delivery_attempts WHERE delivery_id = ANY ($1)
