-- Posts that one re-check did not find at their source. They are blanked when a second one, at least an hour later, does not
-- find them either: for a while, a platform may answer 404 for posts that exist. Written by scanners.
CREATE TABLE missing_posts (
    platform text NOT NULL,
    post_id text NOT NULL,
    first_time timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT missing_posts_pkey PRIMARY KEY (platform, post_id)
);
CREATE INDEX missing_posts_due_idx ON missing_posts (platform, first_time);
COMMENT ON COLUMN missing_posts.first_time IS 'when it was first not found, or a later look was put off because its answer was implausible';
