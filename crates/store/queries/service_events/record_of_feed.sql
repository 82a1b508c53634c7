-- $1 text: feed
-- $2 text: event_type
-- $3 jsonb: details
INSERT INTO service_events (namespace_id, event_type, name, details)
SELECT namespace_id, $2, 'namespaces/' || ulid(namespace_id), $3
FROM (SELECT DISTINCT namespace_id FROM connections WHERE events <> '{}' AND $2 = ANY (events)) AS receiving
WHERE EXISTS (SELECT FROM feed_watchers AS w WHERE w.feed = $1 AND w.namespace_id = receiving.namespace_id)
