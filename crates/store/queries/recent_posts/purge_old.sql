-- $1 text: feeds after this name
-- $2 bigint: most feeds
-- $3 double precision: longest age in seconds
WITH page AS (
    SELECT name FROM feeds WHERE name > $1 ORDER BY name LIMIT $2
), gone AS (
    DELETE FROM recent_posts USING page
    WHERE feed = page.name AND time < clock_timestamp() - $3 * interval '1 second'
)
SELECT max(name) AS last FROM page
