-- When each account first watched a feed, and what the feed had by then. So an account sees nothing of the time when only
-- others watched the feed. Written by the services that change what a Manager watches; scanners note when an account has
-- left a feed, and delete the row a week later.
CREATE TABLE account_feeds (
    account_id uuid NOT NULL
        CONSTRAINT account_feeds_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
    feed text NOT NULL CONSTRAINT account_feeds_feed_fkey REFERENCES feeds (name) ON DELETE CASCADE,
    watch_time timestamptz NOT NULL,
    before jsonb NOT NULL,
    leave_time timestamptz,
    CONSTRAINT account_feeds_pkey PRIMARY KEY (account_id, feed)
);
CREATE INDEX account_feeds_feed_idx ON account_feeds (feed);
CREATE INDEX account_feeds_new_idx ON account_feeds (account_id, watch_time);
COMMENT ON COLUMN account_feeds.watch_time IS 'the first watch; the feed''s creation, if it was before this table';
COMMENT ON COLUMN account_feeds.before IS 'at watch_time: numbers of gaps and quarantined posts, the row of feed_days, and posts of feed_stats by interval';
COMMENT ON COLUMN account_feeds.leave_time IS 'when a scanner found that no Manager of the account watches it; NULL otherwise';
