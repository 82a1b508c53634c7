-- $1 uuid[]: namespaces
SELECT id, account_id FROM namespaces WHERE id = ANY ($1)
