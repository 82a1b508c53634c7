-- Posts that matched, and their Scans. Written by the scanner in the transaction that moves the feed's cursor; the
-- gateway writes labels. Posts and Scans are partitioned by week, and retention drops partitions. Their ids carry their
-- time to the microsecond, so that a query finds a row by its id in one partition.
CREATE TABLE posts (
    id uuid NOT NULL,
    receive_time timestamptz NOT NULL,
    post_key uuid NOT NULL,
    feed text NOT NULL,
    type text NOT NULL CONSTRAINT posts_type_check
        CHECK (type IN ('FORUM_LINK', 'FORUM_COMMENT', 'MICROBLOG_TWEET', 'NETWORK_POST')),
    time timestamptz NOT NULL,
    post_id text NOT NULL,
    title text,
    text text,
    url text NOT NULL,
    subforum_id text,
    subforum_name text,
    subforum_url text,
    user_id text NOT NULL,
    user_name text NOT NULL,
    user_url text NOT NULL,
    erase_time timestamptz,
    CONSTRAINT posts_pkey PRIMARY KEY (receive_time, id),
    CONSTRAINT posts_subforum_check CHECK (
        (subforum_id IS NULL) = (subforum_name IS NULL) AND (subforum_id IS NULL) = (subforum_url IS NULL)
    )
) PARTITION BY RANGE (receive_time);
COMMENT ON COLUMN posts.feed IS 'the feed through which the post came first';
COMMENT ON COLUMN posts.post_id IS 'the id that clients see, unique over all platforms';
COMMENT ON COLUMN posts.erase_time IS 'when title, text and author were blanked, for the post is gone at its source';

-- PostgreSQL requires the partition column in every unique key. So keys that must be unique over all time are in these
-- small tables. Retention deletes rows in batches.
CREATE TABLE post_keys (
    post_key uuid CONSTRAINT post_keys_pkey PRIMARY KEY,
    id uuid NOT NULL
);
-- Serves retention, which purges old keys by the time in their ids.
CREATE INDEX post_keys_time_idx ON post_keys (id);
COMMENT ON COLUMN post_keys.post_key IS 'the first 16 bytes of the SHA-256 of posts.post_id; of a feed that a customer named, of its name, a NUL and posts.post_id';

CREATE TABLE scan_keys (
    namespace_id uuid NOT NULL,
    manager_id uuid NOT NULL,
    post_key uuid NOT NULL,
    create_time timestamptz NOT NULL,
    CONSTRAINT scan_keys_pkey PRIMARY KEY (namespace_id, manager_id, post_key)
);
-- Serves retention, which purges old rows by their time.
CREATE INDEX scan_keys_time_idx ON scan_keys (create_time);
COMMENT ON COLUMN scan_keys.post_key IS 'the first 16 bytes of the SHA-256 of posts.post_id, whichever feed brought it';

-- The createTime of the newest Scan of each Manager. A transaction that inserts Scans locks these rows, in order, until
-- its commit. So times of Scans strictly ascend per Manager and become visible in that order, and a Manager's bound on
-- the Scans of a day (UTC) holds for all scanners together. Created and deleted with the Manager: without the row no
-- Scan can be inserted.
CREATE TABLE scan_clocks (
    namespace_id uuid NOT NULL,
    manager_id uuid NOT NULL,
    last_time timestamptz NOT NULL,
    quota_day date,
    quota_made integer NOT NULL DEFAULT 0,
    quota_suppressed integer NOT NULL DEFAULT 0,
    quota_lowest double precision,
    quota_highest double precision,
    refused_since timestamptz,
    refused_time timestamptz,
    CONSTRAINT scan_clocks_pkey PRIMARY KEY (namespace_id, manager_id),
    CONSTRAINT scan_clocks_manager_fkey
        FOREIGN KEY (namespace_id, manager_id) REFERENCES managers (namespace_id, id) ON DELETE CASCADE
) WITH (fillfactor = 50);
-- What a Manager missed because its account had used up its day. A scanner turns it into backfills on the next day.
CREATE INDEX scan_clocks_refused_idx ON scan_clocks (namespace_id, manager_id) WHERE refused_since IS NOT NULL;
COMMENT ON COLUMN scan_clocks.quota_day IS 'the day that the other quota columns are of';
COMMENT ON COLUMN scan_clocks.quota_suppressed IS 'matches of that day of which no Scan was made';
COMMENT ON COLUMN scan_clocks.quota_lowest IS 'the lowest score of that day''s matches, suppressed ones too';
COMMENT ON COLUMN scan_clocks.refused_since IS 'time of the oldest post that was refused; NULL if no post waits to be requested again';
COMMENT ON COLUMN scan_clocks.refused_time IS 'when a post was last refused';

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

CREATE TABLE scans (
    namespace_id uuid NOT NULL,
    manager_id uuid NOT NULL,
    id uuid NOT NULL,
    create_time timestamptz NOT NULL,
    update_time timestamptz NOT NULL,
    post_id uuid NOT NULL,
    post_receive_time timestamptz NOT NULL,
    value boolean NOT NULL,
    matched jsonb NOT NULL,
    fanned_out boolean NOT NULL DEFAULT false,
    labels text[] NOT NULL DEFAULT '{}'
        CONSTRAINT scans_labels_check CHECK (cardinality(labels) <= 10),
    places jsonb NOT NULL DEFAULT '[]',
    CONSTRAINT scans_pkey PRIMARY KEY (namespace_id, manager_id, create_time, id)
) PARTITION BY RANGE (create_time);
-- The Scans of all Managers of a Namespace by createTime, for `managers/-/scans`.
CREATE INDEX scans_namespace_idx ON scans (namespace_id, create_time, id);
CREATE INDEX scans_not_fanned_out_idx ON scans (create_time) WHERE NOT fanned_out;
-- Only its customer changes a Scan after its creation.
CREATE INDEX scans_judged_idx ON scans (update_time) WHERE update_time > create_time;
-- Finds the Scans of old posts, before retention drops a week of posts. Scans are inserted in about the order of their
-- posts, so a block range index of a few pages is enough.
CREATE INDEX scans_post_receive_time_idx ON scans USING brin (post_receive_time) WITH (pages_per_range = 32, autosummarize = on);
COMMENT ON COLUMN scans.post_id IS 'posts.id';
COMMENT ON COLUMN scans.post_receive_time IS 'posts.receive_time, so that a join reads one partition';
COMMENT ON COLUMN scans.fanned_out IS 'set by the transaction that inserts the deliveries, of which there may be none';
COMMENT ON COLUMN scans.places IS 'of domain::Place: where the same was found again';

-- Keys by which a later post is recognised as a near-duplicate of a Scan's post: about ten rows per Scan, only of
-- Managers that collapse duplicates, for seven days. Written by scanners under the lock of the Manager's clock.
CREATE TABLE scan_likes (
    namespace_id uuid NOT NULL,
    manager_id uuid NOT NULL,
    key bigint NOT NULL,
    scan_id uuid NOT NULL,
    create_time timestamptz NOT NULL,
    sketch bytea,
    silent boolean NOT NULL DEFAULT false,
    CONSTRAINT scan_likes_pkey PRIMARY KEY (namespace_id, manager_id, key, scan_id)
);
-- Serves retention, which purges old rows by their time.
CREATE INDEX scan_likes_time_idx ON scan_likes (create_time);
COMMENT ON COLUMN scan_likes.key IS 'of matching::likeness';
COMMENT ON COLUMN scan_likes.create_time IS 'the Scan''s';
COMMENT ON COLUMN scan_likes.sketch IS 'to be compared; null where the key is of a link, and suffices';
COMMENT ON COLUMN scan_likes.silent IS 'its Scan was made of the past, without deliveries';

-- Progress of the re-check, which finds posts that were deleted at their source and erases what their author wrote. One
-- row per platform that is re-checked.
CREATE TABLE rechecks (
    platform text CONSTRAINT rechecks_pkey PRIMARY KEY,
    stage text NOT NULL DEFAULT 'POSTS' CONSTRAINT rechecks_stage_check CHECK (stage IN ('POSTS', 'RECENT')),
    place_time timestamptz NOT NULL DEFAULT 'epoch',
    place_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    begin_time timestamptz NOT NULL DEFAULT clock_timestamp(),
    next_time timestamptz NOT NULL DEFAULT clock_timestamp(),
    leased_by uuid,
    crash_count smallint NOT NULL DEFAULT 0
);
COMMENT ON COLUMN rechecks.stage IS 'which table is walked: posts first, then recent_posts';
COMMENT ON COLUMN rechecks.place_time IS 'with place_id the last row that was looked at';
COMMENT ON COLUMN rechecks.crash_count IS 'replicas in a row that died while they held the lease';

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

SELECT ensure_partitions(parent, clock_timestamp() - interval '7 days', 6)
FROM unnest(ARRAY['posts', 'scans']) AS parent;
