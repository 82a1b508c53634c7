-- $1 text: platform
-- $2 text[]: posts that were not found
-- $3 text[]: those of them that are decided
INSERT INTO missing_posts (platform, post_id)
SELECT $1, post_id FROM unnest($2) AS gone (post_id) WHERE post_id <> ALL ($3) ON CONFLICT DO NOTHING
