-- $1 uuid[]: namespaces
-- $2 uuid[]: Managers
-- $3 bigint[]: key
-- $4 double precision: seconds within which Scans are compared
-- $5 boolean: true to compare with silent Scans too
SELECT l.namespace_id, l.manager_id, l.key, l.scan_id, l.sketch
FROM unnest($1, $2, $3) AS given (namespace_id, manager_id, key)
JOIN scan_likes AS l USING (namespace_id, manager_id, key)
WHERE l.create_time > clock_timestamp() - $4 * interval '1 second' AND ($5 OR NOT l.silent)
    AND EXISTS (SELECT FROM scans AS s WHERE s.namespace_id = l.namespace_id
        AND s.manager_id = l.manager_id AND s.create_time = l.create_time AND s.id = l.scan_id)
ORDER BY l.create_time, l.scan_id
