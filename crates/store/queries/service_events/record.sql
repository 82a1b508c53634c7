-- $1 uuid: namespace
-- $2 text: event_type
-- $3 text: name of the resource
-- $4 jsonb: details
INSERT INTO service_events (namespace_id, event_type, name, details)
SELECT $1, $2, $3, $4
WHERE EXISTS (SELECT FROM connections WHERE namespace_id = $1 AND events <> '{}' AND $2 = ANY (events))
