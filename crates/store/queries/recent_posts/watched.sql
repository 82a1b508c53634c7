-- $1 text[]: feeds
-- $2 uuid: namespace
SELECT name FROM unnest($1) AS given (name)
WHERE EXISTS (SELECT FROM feed_watchers AS w WHERE w.feed = given.name AND w.namespace_id = $2)
