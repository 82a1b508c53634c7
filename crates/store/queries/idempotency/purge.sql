-- $1 interval: how long rows are kept
-- $2 bigint: most rows
DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM idempotency_keys WHERE create_time < clock_timestamp() - $1
    ORDER BY create_time LIMIT $2 FOR UPDATE SKIP LOCKED))
