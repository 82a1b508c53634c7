-- $1 text: platform
-- $2 text[]: post_id
DELETE FROM missing_posts WHERE platform = $1 AND post_id = ANY ($2)
