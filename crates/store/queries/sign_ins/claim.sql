-- $1 bytea: browser_hash
DELETE FROM sign_ins
WHERE browser_hash = $1 AND person IS NOT NULL AND expire_time > clock_timestamp()
RETURNING account_id, role, person, subject
