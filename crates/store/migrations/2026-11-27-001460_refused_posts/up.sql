-- Posts of matches that the daily quota of Scans refused. Feeds keep only their newest posts, for all accounts together;
-- these stay until the quota allows their Scans, for each Manager.
CREATE TABLE refused_posts (
    namespace_id uuid NOT NULL,
    manager_id uuid NOT NULL,
    feed text NOT NULL,
    post_key uuid NOT NULL,
    account_id uuid NOT NULL,
    time timestamptz NOT NULL,
    refuse_time timestamptz NOT NULL DEFAULT clock_timestamp(),
    bytes integer NOT NULL,
    post jsonb NOT NULL,
    CONSTRAINT refused_posts_pkey PRIMARY KEY (namespace_id, manager_id, feed, post_key)
);
CREATE INDEX refused_posts_account_idx ON refused_posts (account_id, refuse_time);
CREATE INDEX refused_posts_time_idx ON refused_posts (refuse_time);
CREATE INDEX refused_posts_post_idx ON refused_posts (post_key);
COMMENT ON COLUMN refused_posts.bytes IS 'size of the post as JSON';
COMMENT ON COLUMN refused_posts.time IS 'the post''s own time';
COMMENT ON COLUMN refused_posts.refuse_time IS 'the last time';
