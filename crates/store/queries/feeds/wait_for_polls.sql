-- $1 text: name
SELECT FROM feeds WHERE name = $1 FOR SHARE
