-- $1 text[]: feeds
SELECT FROM feeds WHERE name = ANY ($1) AND NOT watched ORDER BY name FOR KEY SHARE
