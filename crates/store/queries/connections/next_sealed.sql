-- $1 uuid: namespace of the last Connection
-- $2 uuid: last Connection
-- $3 bigint: most Connections
SELECT namespace_id, id, url, url_sealed, headers_sealed, signing_secrets_sealed FROM connections
WHERE (namespace_id, id) > ($1, $2) ORDER BY namespace_id, id LIMIT $3
