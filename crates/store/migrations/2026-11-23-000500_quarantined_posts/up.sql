-- Posts that could not be read or stored, and were skipped so that their feed goes on. Written by the scanner in the
-- transaction that moves the feed's cursor, so that each is noted once; the newest 100 of a feed, for 30 days. There is
-- no index on the time: the table stays small, and is purged a few times a day.
CREATE TABLE quarantined_posts (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT quarantined_posts_pkey PRIMARY KEY,
    feed text NOT NULL,
    quarantine_time timestamptz NOT NULL,
    kind text NOT NULL CONSTRAINT quarantined_posts_kind_check CHECK (kind IN ('UNREADABLE', 'REFUSED')),
    post_id text,
    reason text NOT NULL
);
CREATE INDEX quarantined_posts_feed_idx ON quarantined_posts (feed, id);
COMMENT ON COLUMN quarantined_posts.kind IS 'UNREADABLE: an item of the platform''s answer; REFUSED: by this database';
COMMENT ON COLUMN quarantined_posts.post_id IS 'UNREADABLE: the platform''s own id; REFUSED: the id of the post; NULL where it has none';

-- A column with a constant default: no row is rewritten.
ALTER TABLE feeds
    ADD COLUMN quarantine_count bigint NOT NULL DEFAULT 0,
    ADD COLUMN quarantine_time timestamptz,
    ADD COLUMN quarantine_reason text;
COMMENT ON COLUMN feeds.quarantine_count IS 'posts that were ever skipped, also those that quarantined_posts no longer has';
COMMENT ON COLUMN feeds.quarantine_time IS 'when the last of them was';
COMMENT ON COLUMN feeds.quarantine_reason IS 'why, in words for customers';
