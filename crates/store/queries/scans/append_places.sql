-- $1 uuid[]: namespaces
-- $2 uuid[]: Managers
-- $3 timestamptz[]: create_time
-- $4 uuid[]: id
-- $5 jsonb[]: places of each
-- $6 integer: most places of a Scan
UPDATE scans AS s SET places = jsonb_path_query_array(
    s.places || given.places, '$[0 to $end]', jsonb_build_object('end', $6 - 1))
FROM unnest($1, $2, $3, $4, $5) AS given (namespace_id, manager_id, create_time, id, places)
WHERE s.namespace_id = given.namespace_id AND s.manager_id = given.manager_id
    AND s.create_time = given.create_time AND s.id = given.id
    AND jsonb_array_length(s.places) < $6
