SELECT count(*) FILTER (WHERE c.state = 'ACTIVE' AND l.open_until IS NULL) AS active,
    count(*) FILTER (WHERE c.state = 'ACTIVE' AND l.open_until IS NOT NULL) AS broken,
    count(*) FILTER (WHERE c.state <> 'ACTIVE') AS disabled
FROM connections AS c LEFT JOIN connection_lanes AS l
    ON l.namespace_id = c.namespace_id AND l.connection_id = c.id
