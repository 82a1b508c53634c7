-- $1 text: name
-- $2 uuid: replica
-- $3 jsonb: cursor
SELECT FROM feeds WHERE name = $1 AND leased_by = $2 AND cursor IS NOT DISTINCT FROM $3 FOR UPDATE
