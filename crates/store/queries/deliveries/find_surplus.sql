-- $1 uuid[]: namespaces
-- $2 uuid[]: Managers
-- $3 uuid[]: Scans
-- $4 bigint: most filters of an account
SELECT position FROM (
    SELECT given.position, count, sum(count) OVER (
        PARTITION BY n.account_id ORDER BY given.id, given.position
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM unnest($1, $2, $3) WITH ORDINALITY AS given (namespace_id, manager_id, id, position)
    CROSS JOIN LATERAL (
        SELECT count(*) FROM manager_notices AS f WHERE f.namespace_id = given.namespace_id
            AND f.manager_id = given.manager_id AND f.filter IS NOT NULL
    ) AS f
    JOIN namespaces AS n ON n.id = given.namespace_id
) AS filtered WHERE count > 0 AND before >= $4
