-- $1 bigint[]: events
WITH taken AS (
    DELETE FROM service_events WHERE id IN (
        SELECT id FROM service_events WHERE id = ANY ($1) FOR UPDATE SKIP LOCKED)
    RETURNING id, namespace_id, event_type, name, details, create_time
)
SELECT t.id, t.namespace_id, t.event_type, t.name, t.details, t.create_time, c.id AS connection_id,
    coalesce(c.state = 'ACTIVE', false) AS active
FROM taken AS t
-- A disabled Connection does not receive that it is disabled.
LEFT JOIN connections AS c ON c.namespace_id = t.namespace_id AND c.events <> '{}' AND t.event_type = ANY (c.events)
    AND 'namespaces/' || ulid(c.namespace_id) || '/connections/' || ulid(c.id) <> t.name
ORDER BY t.id, c.id
