-- $1 uuid: namespace
-- $2 uuid: manager
-- $3 text[]: feeds
INSERT INTO feed_watchers (feed, namespace_id, manager_id)
SELECT DISTINCT name, $1, $2 FROM unnest($3) AS given (name) ORDER BY name ON CONFLICT DO NOTHING
