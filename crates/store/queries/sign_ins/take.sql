-- $1 bytea: state_hash
-- $2 bytea: browser_hash
WITH waiting AS (
    SELECT state_hash, sealed FROM sign_ins
    WHERE state_hash = $1 AND browser_hash = $2 AND sealed IS NOT NULL AND expire_time > clock_timestamp()
    FOR UPDATE
)
UPDATE sign_ins SET sealed = NULL FROM waiting WHERE sign_ins.state_hash = waiting.state_hash
RETURNING waiting.sealed
