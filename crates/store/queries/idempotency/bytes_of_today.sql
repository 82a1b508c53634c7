-- $1 uuid: API key
SELECT d.bytes
FROM api_keys AS k
JOIN idempotency_days AS d ON d.account_id = k.account_id AND d.day = (clock_timestamp() AT TIME ZONE 'UTC')::date
WHERE k.id = $1
