-- $1 uuid[]: keys
-- $2 uuid[]: id of each, if it is new
INSERT INTO post_keys (post_key, id) SELECT * FROM unnest($1, $2)
ON CONFLICT DO NOTHING RETURNING post_key, id
