-- $1 uuid: namespace
-- $2 uuid: Manager
-- $3 bigint: generation
-- $4 jsonb: instructions
-- $5 timestamptz: apply_time
UPDATE managers SET instructions = $4, apply_time = $5, recompile_after = NULL, recompile_failures = 0
WHERE namespace_id = $1 AND id = $2 AND generation = $3 AND state = 'APPLIED'
RETURNING enable
