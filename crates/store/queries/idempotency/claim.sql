-- $1 uuid: API key
-- $2 bytea: request_hash
-- $3 interval: how long responses are valid
INSERT INTO idempotency_keys AS old (api_key_id, request_hash) VALUES ($1, $2)
ON CONFLICT (api_key_id, request_hash) DO UPDATE SET answer = NULL, create_time = clock_timestamp()
WHERE old.create_time < clock_timestamp() - $3
