-- $1 uuid[]: url_key
-- $2 uuid[]: post_key
-- $3 uuid: namespace
-- $4 bigint: most posts
SELECT feed, post FROM recent_posts AS kept
WHERE (url_key = ANY ($1) OR post_key = ANY ($2))
    AND EXISTS (SELECT FROM feed_watchers AS w WHERE w.feed = kept.feed AND w.namespace_id = $3)
ORDER BY time DESC, feed LIMIT $4
