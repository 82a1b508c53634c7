-- $1 uuid: namespace
-- $2 uuid: Manager
-- $3 double precision: first rest in seconds
-- $4 double precision: longest rest in seconds
UPDATE managers SET recompile_failures = least(recompile_failures + 1, 30),
    recompile_after = clock_timestamp() + interval '1 second' * least($3 * 2 ^ recompile_failures, greatest($3, $4))
WHERE namespace_id = $1 AND id = $2 AND state = 'APPLIED' AND mode = 'AUTOMATIC' AND enable
    AND (recompile_after IS NULL OR recompile_after < clock_timestamp())
RETURNING generation, source, input, kinds, submit_time,
    coalesce((SELECT a.name FROM namespaces AS n JOIN accounts AS a ON a.id = n.account_id
        WHERE n.id = namespace_id), '') AS account
