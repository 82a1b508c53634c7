-- Short hashes of the ids of each feed's posts of the last week. They show whether a post that becomes visible days late
-- was read before. Written by the scanner in the transaction that moves the feed's cursor: one row per
-- feed and hour of the posts' times, eight bytes per post, kept for eight days. Half of each page stays free, so that
-- updates stay on it.
CREATE TABLE feed_post_ids (
    feed text NOT NULL,
    hour timestamptz NOT NULL,
    ids bytea NOT NULL,
    CONSTRAINT feed_post_ids_pkey PRIMARY KEY (feed, hour)
) WITH (fillfactor = 50);
-- Hashes do not compress.
ALTER TABLE feed_post_ids ALTER COLUMN ids SET STORAGE EXTERNAL;
COMMENT ON COLUMN feed_post_ids.hour IS 'the start of the hour in which the posts were written, by their platform';
COMMENT ON COLUMN feed_post_ids.ids IS 'the first 8 bytes of the SHA-256 of each post''s id';

ALTER TABLE feeds
    ADD COLUMN ids_since timestamptz,
    ADD COLUMN late_reading jsonb;
COMMENT ON COLUMN feeds.ids_since IS 'all posts that were written since then and read are in feed_post_ids; NULL where a platform has no late posts';
COMMENT ON COLUMN feeds.late_reading IS 'the last search for late posts of a week, and its position if it goes on in a later poll; NULL before the first';
