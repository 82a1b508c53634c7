-- Posts that matched, and the Scans made of them. Written by the scanner in the transaction that moves
-- the feed's cursor. Both are partitioned by week; retention drops partitions. Their ids carry their
-- time to the microsecond, so that a row is found by its id in one partition.
CREATE TABLE posts (
    id uuid NOT NULL,
    receive_time timestamptz NOT NULL,
    post_key uuid NOT NULL,
    feed text NOT NULL,
    type text NOT NULL CONSTRAINT posts_type_check
        CHECK (type IN ('FORUM_LINK', 'MICROBLOG_TWEET', 'NETWORK_POST')),
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
    CONSTRAINT posts_pkey PRIMARY KEY (receive_time, id),
    CONSTRAINT posts_subforum_check CHECK (
        (subforum_id IS NULL) = (subforum_name IS NULL) AND (subforum_id IS NULL) = (subforum_url IS NULL)
    )
) PARTITION BY RANGE (receive_time);
COMMENT ON COLUMN posts.feed IS 'the feed through which the post came first';
COMMENT ON COLUMN posts.post_id IS 'the id that clients see, unique over all platforms';

-- PostgreSQL wants the partition column in every unique key, so what must be unique over all time
-- stands in these small tables. Purged in batches at retention.
CREATE TABLE post_keys (
    post_key uuid CONSTRAINT post_keys_pkey PRIMARY KEY,
    id uuid NOT NULL
);
COMMENT ON COLUMN post_keys.post_key IS 'the first 16 bytes of the SHA-256 of posts.post_id';

CREATE TABLE scan_keys (
    namespace_id uuid NOT NULL,
    manager_id uuid NOT NULL,
    post_key uuid NOT NULL,
    create_time timestamptz NOT NULL,
    CONSTRAINT scan_keys_pkey PRIMARY KEY (namespace_id, manager_id, post_key)
);

-- The createTime of the newest Scan of each Manager. Whoever inserts Scans locks these rows, in order,
-- to the commit: so times of Scans strictly ascend per Manager and become visible in that order.
-- Made with the Manager and gone with it: without the row no Scan can be made.
CREATE TABLE scan_clocks (
    namespace_id uuid NOT NULL,
    manager_id uuid NOT NULL,
    last_time timestamptz NOT NULL,
    CONSTRAINT scan_clocks_pkey PRIMARY KEY (namespace_id, manager_id),
    CONSTRAINT scan_clocks_manager_fkey
        FOREIGN KEY (namespace_id, manager_id) REFERENCES managers (namespace_id, id) ON DELETE CASCADE
) WITH (fillfactor = 50);

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
    CONSTRAINT scans_pkey PRIMARY KEY (namespace_id, manager_id, create_time, id)
) PARTITION BY RANGE (create_time);
CREATE INDEX scans_not_fanned_out_idx ON scans (create_time) WHERE NOT fanned_out;
COMMENT ON COLUMN scans.post_id IS 'posts.id';
COMMENT ON COLUMN scans.post_receive_time IS 'posts.receive_time, so that a join reads one partition';
COMMENT ON COLUMN scans.fanned_out IS 'set by the transaction that inserts the deliveries, of which there may be none';
