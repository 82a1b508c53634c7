-- $1 uuid: replica
SELECT id = $1 AS own FROM replicas
WHERE heartbeat_time > clock_timestamp() - interval '4 seconds'
    AND service = (SELECT service FROM replicas WHERE id = $1)
ORDER BY id LIMIT 1
