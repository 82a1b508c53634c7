-- $1 uuid: replica
-- $2 text: service
WITH swept AS (
    DELETE FROM replicas WHERE heartbeat_time < clock_timestamp() - interval '1 day' AND id <> $1
), ahead AS (
    SELECT id FROM replicas WHERE heartbeat_time > clock_timestamp() + interval '1 minute' AND id <> $1
    FOR NO KEY UPDATE SKIP LOCKED
), followed AS (
    UPDATE replicas SET heartbeat_time = clock_timestamp() WHERE id IN (SELECT id FROM ahead)
)
INSERT INTO replicas (id, service, heartbeat_time) VALUES ($1, $2, clock_timestamp())
ON CONFLICT (id) DO UPDATE SET heartbeat_time = clock_timestamp()
