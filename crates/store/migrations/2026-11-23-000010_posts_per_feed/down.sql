DROP TABLE address_keys;
COMMENT ON COLUMN scan_keys.post_key IS NULL;
COMMENT ON COLUMN recent_posts.post_key IS 'as post_keys.post_key';
COMMENT ON COLUMN post_keys.post_key IS 'the first 16 bytes of the SHA-256 of posts.post_id';
