-- $1 text[]: feeds that are left
-- $2 text[]: feeds that come
-- $3 uuid: namespace
-- $4 uuid: manager
SELECT FROM (SELECT DISTINCT name, leaves FROM
    (SELECT unnest($1), true UNION ALL SELECT unnest($2), false) AS given (name, leaves) ORDER BY name) AS given
LEFT JOIN LATERAL (SELECT true AS stays FROM feed_watchers AS other WHERE given.leaves AND other.feed = given.name
    LIMIT 1 FOR KEY SHARE SKIP LOCKED) AS other ON true
LEFT JOIN LATERAL (SELECT true FROM feeds WHERE given.leaves AND other.stays IS NULL AND feeds.name = given.name
    FOR UPDATE) AS last ON true
LEFT JOIN LATERAL (SELECT true FROM feeds WHERE NOT given.leaves AND feeds.name = given.name
    AND NOT EXISTS (SELECT FROM feed_watchers AS own
        WHERE own.feed = given.name AND own.namespace_id = $3 AND own.manager_id = $4)
    FOR KEY SHARE) AS new ON true
