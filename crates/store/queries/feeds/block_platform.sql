-- $1 text: platform
-- $2 text: last_error
UPDATE feeds SET trouble = 'BLOCKED', last_error = $2, failure_count = greatest(failure_count, 1)
WHERE platform = $1 AND watched AND (trouble IS DISTINCT FROM 'BLOCKED' OR last_error IS DISTINCT FROM $2)
