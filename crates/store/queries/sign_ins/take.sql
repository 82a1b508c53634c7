-- $1 bytea: state_hash
-- $2 bytea: browser_hash
DELETE FROM sign_ins
WHERE state_hash = $1 AND browser_hash = $2 AND sealed IS NOT NULL AND expire_time > clock_timestamp()
RETURNING origin, sealed
