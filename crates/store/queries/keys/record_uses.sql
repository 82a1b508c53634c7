-- $1 uuid[]: API keys
-- $2 timestamptz[]: when each was used
WITH later AS (
    SELECT k.id, given.time FROM api_keys AS k JOIN unnest($1, $2) AS given (id, time) ON given.id = k.id
    WHERE k.last_use_time IS NULL OR k.last_use_time < given.time
    -- Replicas lock keys in different orders, and an operator's transaction may stay open.
    FOR NO KEY UPDATE OF k SKIP LOCKED
)
UPDATE api_keys AS k SET last_use_time = later.time FROM later WHERE k.id = later.id
