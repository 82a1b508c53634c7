-- $1 text[]: feeds
WITH found AS (SELECT name, EXISTS (SELECT FROM feed_watchers WHERE feed = name) AS is_watched
    FROM feeds WHERE name = ANY ($1)),
changed AS (SELECT feeds.name, is_watched FROM feeds JOIN found USING (name)
    WHERE watched IS DISTINCT FROM is_watched ORDER BY feeds.name FOR NO KEY UPDATE OF feeds)
UPDATE feeds SET watched = is_watched, next_poll_time = clock_timestamp(),
    rewatch_time = CASE WHEN is_watched AND cursor IS NOT NULL THEN clock_timestamp() END
FROM changed WHERE feeds.name = changed.name
