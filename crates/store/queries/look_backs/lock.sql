-- $1 bigint: look-back
-- $2 uuid: replica
-- $3 jsonb: cursor
SELECT FROM look_backs WHERE id = $1 AND leased_by = $2 AND cursor IS NOT DISTINCT FROM $3 FOR UPDATE
