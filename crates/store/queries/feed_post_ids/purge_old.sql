-- $1 text: feeds after this name
-- $2 bigint: most feeds
-- $3 timestamptz: oldest hour that is kept
WITH page AS (
    SELECT name FROM feeds WHERE name > $1 ORDER BY name LIMIT $2
), gone AS (
    DELETE FROM feed_post_ids USING page WHERE feed = page.name AND hour < $3
)
SELECT max(name) AS last FROM page
