-- $1 uuid: API key
-- $2 bytea: request_hash
-- $3 bytea: answer
-- $4 bigint: bytes
WITH stored AS (
    UPDATE idempotency_keys SET answer = $3 WHERE api_key_id = $1 AND request_hash = $2
)
INSERT INTO idempotency_days AS d (account_id, day, bytes)
SELECT account_id, (clock_timestamp() AT TIME ZONE 'UTC')::date, $4 FROM api_keys WHERE id = $1
ON CONFLICT (account_id, day) DO UPDATE SET bytes = d.bytes + excluded.bytes
