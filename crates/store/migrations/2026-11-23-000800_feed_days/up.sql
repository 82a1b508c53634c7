-- What the polls of a feed brought on a UTC day, so that a customer can check that nothing was missed. Written by the scanner
-- in the transaction that moves the feed's cursor, so that nothing counts twice; one upsert for each poll that brought
-- anything. One row per feed and day, kept as long as posts. Half of each page stays free, so that updates stay on it.
CREATE TABLE feed_days (
    feed text NOT NULL,
    day date NOT NULL,
    posts bigint NOT NULL,
    late bigint NOT NULL,
    gone bigint NOT NULL,
    quarantined bigint NOT NULL,
    gaps bigint NOT NULL,
    CONSTRAINT feed_days_pkey PRIMARY KEY (feed, day)
) WITH (fillfactor = 50);
COMMENT ON COLUMN feed_days.day IS 'UTC day of the polls, not of the posts';
COMMENT ON COLUMN feed_days.posts IS 'posts read and stored, including late ones';
COMMENT ON COLUMN feed_days.late IS 'posts that became visible after the feed had passed their time';
COMMENT ON COLUMN feed_days.gone IS 'stored posts that the platform reported as deleted';

-- Periods whose posts may be missing. Written with feed_days; the newest 100 of a feed.
CREATE TABLE feed_gaps (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT feed_gaps_pkey PRIMARY KEY,
    feed text NOT NULL,
    find_time timestamptz NOT NULL,
    start_time timestamptz,
    end_time timestamptz NOT NULL,
    reason text NOT NULL
);
CREATE INDEX feed_gaps_feed_idx ON feed_gaps (feed, id);
COMMENT ON COLUMN feed_gaps.start_time IS 'NULL where the platform does not say from when on posts are missing';
