-- What each feed brought lately, matched or not: for previews, and for Managers that are new. Written by
-- the scanner in the transaction that moves the feed's cursor; about the newest 1,000 posts of a feed,
-- none older than 72 hours.
CREATE TABLE recent_posts (
    post_key uuid NOT NULL,
    feed text NOT NULL,
    time timestamptz NOT NULL,
    url_key uuid NOT NULL,
    post jsonb NOT NULL,
    CONSTRAINT recent_posts_pkey PRIMARY KEY (post_key, feed)
);
CREATE INDEX recent_posts_newest_idx ON recent_posts (feed, time);
CREATE INDEX recent_posts_url_idx ON recent_posts (url_key);
COMMENT ON COLUMN recent_posts.post_key IS 'as post_keys.post_key';
COMMENT ON COLUMN recent_posts.url_key IS 'the first 16 bytes of the SHA-256 of the post''s address, without scheme and fragment';

-- How a feed does: what its next poll time is reckoned from, and what customers are shown.
ALTER TABLE feeds
    ADD COLUMN posts_per_day double precision,
    ADD COLUMN read_time timestamptz,
    ADD COLUMN last_post_time timestamptz,
    ADD COLUMN trouble text
        CONSTRAINT feeds_trouble_check CHECK (trouble IN ('FAILING', 'BLOCKED', 'BUDGET_SPENT')),
    ADD COLUMN slow boolean NOT NULL DEFAULT false,
    ADD COLUMN kept_since timestamptz;
COMMENT ON COLUMN feeds.posts_per_day IS 'an estimate that forgets with the days';
COMMENT ON COLUMN feeds.read_time IS 'when a poll last succeeded';
COMMENT ON COLUMN feeds.last_post_time IS 'the time of the newest post read';
COMMENT ON COLUMN feeds.trouble IS 'why the last poll gave nothing; NULL when it did';
COMMENT ON COLUMN feeds.slow IS 'the last poll took long: the next one may only take one of the places kept for such';
COMMENT ON COLUMN feeds.kept_since IS 'recent_posts has every post of the feed since then; NULL where none are kept';
