-- $1 uuid[]: namespaces
-- $2 uuid[]: managers
-- $3 timestamptz[]: refused_time
WITH locked AS (
    SELECT clock.namespace_id, clock.manager_id FROM scan_clocks AS clock
    JOIN unnest($1, $2, $3) AS given (namespace_id, manager_id, refused_time)
        ON clock.namespace_id = given.namespace_id AND clock.manager_id = given.manager_id
            AND clock.refused_time = given.refused_time
    ORDER BY clock.namespace_id, clock.manager_id FOR UPDATE OF clock)
UPDATE scan_clocks AS clock SET refused_since = NULL FROM locked
WHERE clock.namespace_id = locked.namespace_id AND clock.manager_id = locked.manager_id
