-- $1 uuid[]: namespaces
-- $2 uuid[]: Managers
-- $3 timestamptz[]: refused_since
UPDATE scan_clocks AS clock SET refused_since = least(clock.refused_since, given.since),
    refused_time = clock_timestamp()
FROM unnest($1, $2, $3) AS given (namespace_id, manager_id, since)
WHERE clock.namespace_id = given.namespace_id AND clock.manager_id = given.manager_id
