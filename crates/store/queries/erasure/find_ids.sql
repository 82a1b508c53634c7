-- $1 uuid[]: post_key
SELECT id FROM post_keys WHERE post_key = ANY ($1) ORDER BY id
