-- Posts of feeds that customers name are kept per feed: their keys are of the feed and the id. Rows that were stored by
-- the id alone stay as they are, and no poll of such a feed finds them again.
COMMENT ON COLUMN post_keys.post_key IS 'the first 16 bytes of the SHA-256 of posts.post_id; of a feed that a customer named, of its name, a NUL and posts.post_id';
COMMENT ON COLUMN recent_posts.post_key IS 'the first 16 bytes of the SHA-256 of the post''s id, as scan_keys.post_key';
COMMENT ON COLUMN scan_keys.post_key IS 'the first 16 bytes of the SHA-256 of posts.post_id, whichever feed brought it';

-- The key under which addresses of feeds are hashed where receivers see them, in posts.post_id: an address may hold a
-- token. One row, made here and never changed, for ids must stay. Read by scanners when they start.
CREATE TABLE address_keys (
    id boolean NOT NULL DEFAULT true,
    key bytea NOT NULL,
    CONSTRAINT address_keys_pkey PRIMARY KEY (id),
    CONSTRAINT address_keys_one_row_check CHECK (id),
    CONSTRAINT address_keys_key_check CHECK (octet_length(key) = 32)
);
-- Two random UUIDs have 244 random bits, and need no extension.
INSERT INTO address_keys (key)
VALUES (decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'));
