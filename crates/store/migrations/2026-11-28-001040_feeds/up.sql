-- Feeds, what they brought recently, and what platforms may still be asked. Written by the scanner, if not said
-- otherwise.

-- A feed is polled once for all Managers that watch it. Rows are created by the service that applies a Manager; the
-- scanner that holds the lease moves the cursor.
CREATE TABLE feeds (
    name text CONSTRAINT feeds_pkey PRIMARY KEY,
    platform text NOT NULL,
    watched boolean NOT NULL,
    cursor jsonb,
    next_poll_time timestamptz NOT NULL,
    leased_by uuid,
    last_poll_time timestamptz,
    failure_count integer NOT NULL DEFAULT 0,
    last_error text,
    gap_count bigint NOT NULL DEFAULT 0,
    create_time timestamptz NOT NULL,
    posts_per_day double precision,
    read_time timestamptz,
    last_post_time timestamptz,
    trouble text
        CONSTRAINT feeds_trouble_check CHECK (trouble IN ('FAILING', 'BLOCKED', 'BUDGET_SPENT')),
    slow boolean NOT NULL DEFAULT false,
    kept_since timestamptz,
    quarantine_count bigint NOT NULL DEFAULT 0,
    quarantine_time timestamptz,
    quarantine_reason text,
    late_time timestamptz,
    ids_since timestamptz,
    late_reading jsonb,
    -- What is odd about a feed that is read without an error, in words for customers; NULL where nothing is.
    notice text,
    crash_count smallint NOT NULL DEFAULT 0,
    -- A Manager that begins to watch a feed again must not get all posts since its last watcher left.
    rewatch_time timestamptz
);
CREATE INDEX feeds_due_idx ON feeds (platform, next_poll_time) WHERE watched;
-- Serves the scanner's deletion of feeds that no Manager has watched for long. Their next_poll_time is about when the
-- last watcher left.
CREATE INDEX feeds_unwatched_idx ON feeds (next_poll_time) WHERE NOT watched;
COMMENT ON COLUMN feeds.watched IS 'whether an enabled Manager watches it, by feed_watchers';
COMMENT ON COLUMN feeds.cursor IS 'where the last poll ended, in the form of the platform''s adapter';
COMMENT ON COLUMN feeds.next_poll_time IS 'of a feed that is not watched, about when its last watcher left';
COMMENT ON COLUMN feeds.posts_per_day IS 'an estimate that forgets with the days';
COMMENT ON COLUMN feeds.read_time IS 'when a poll last succeeded';
COMMENT ON COLUMN feeds.last_post_time IS 'the time of the newest post read';
COMMENT ON COLUMN feeds.trouble IS 'why the last poll gave nothing; NULL when it did';
COMMENT ON COLUMN feeds.slow IS 'the last poll took long: the next one may only take one of the places kept for such';
COMMENT ON COLUMN feeds.kept_since IS 'recent_posts has every post of the feed since then; NULL where none are kept';
COMMENT ON COLUMN feeds.quarantine_count IS 'posts that were ever skipped, also those that quarantined_posts no longer has';
COMMENT ON COLUMN feeds.quarantine_time IS 'when the last of them was';
COMMENT ON COLUMN feeds.quarantine_reason IS 'why, in words for customers';
COMMENT ON COLUMN feeds.late_time IS 'NULL before the first reading, and where a platform has no late posts';
COMMENT ON COLUMN feeds.ids_since IS 'all posts that were written since then and read are in feed_post_ids; NULL where a platform has no late posts';
COMMENT ON COLUMN feeds.late_reading IS 'the last search for late posts of a week, and its position if it goes on in a later poll; NULL before the first';
COMMENT ON COLUMN feeds.crash_count IS 'replicas in a row that died while they held the lease';
COMMENT ON COLUMN feeds.rewatch_time IS 'when a Manager began to watch the feed again, until polls have caught up';

CREATE TABLE feed_watchers (
    feed text NOT NULL CONSTRAINT feed_watchers_feed_fkey REFERENCES feeds (name) ON DELETE CASCADE,
    namespace_id uuid NOT NULL,
    manager_id uuid NOT NULL,
    CONSTRAINT feed_watchers_pkey PRIMARY KEY (feed, namespace_id, manager_id),
    CONSTRAINT feed_watchers_manager_fkey
        FOREIGN KEY (namespace_id, manager_id) REFERENCES managers (namespace_id, id) ON DELETE CASCADE
);
CREATE INDEX feed_watchers_manager_idx ON feed_watchers (namespace_id, manager_id);
-- Serves the scanner's look for due feeds: a sample of the feeds of a platform that a Namespace watches, by their hash.
CREATE INDEX feed_watchers_sample_idx
    ON feed_watchers (split_part(feed, ':', 1), namespace_id, hashtextextended(feed, 0), feed);

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

-- Recent posts of each feed, matched or not, for previews and for new Managers. Written in the transaction that moves
-- the feed's cursor: about the newest 1,000 posts of a feed, none older than 72 hours.
CREATE TABLE recent_posts (
    post_key uuid NOT NULL,
    feed text NOT NULL,
    time timestamptz NOT NULL,
    url_key uuid NOT NULL,
    post jsonb NOT NULL,
    bytes integer,
    CONSTRAINT recent_posts_pkey PRIMARY KEY (post_key, feed)
);
CREATE INDEX recent_posts_newest_idx ON recent_posts (feed, time);
CREATE INDEX recent_posts_url_idx ON recent_posts (url_key);
COMMENT ON COLUMN recent_posts.post_key IS 'the first 16 bytes of the SHA-256 of the post''s id, as scan_keys.post_key';
COMMENT ON COLUMN recent_posts.url_key IS 'the first 16 bytes of the SHA-256 of the post''s address, without scheme and fragment';
COMMENT ON COLUMN recent_posts.bytes IS 'length of post as JSON; NULL for posts from before the column';

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

-- The key under which addresses of feeds are hashed where receivers see them, in posts.post_id: an address may hold a
-- token. One row, created here and never changed, because ids must not change. Scanners read it when they start.
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

-- What the polls of a feed brought on a UTC day, so that a customer can check that nothing was missed. Written in the
-- transaction that moves the feed's cursor, so that nothing counts twice: one upsert for each poll that brought
-- anything. One row per feed and day, kept as long as posts. Half of each page stays free, so that updates stay on it.
CREATE TABLE feed_days (
    feed text NOT NULL,
    day date NOT NULL,
    posts bigint NOT NULL,
    late bigint NOT NULL,
    gone bigint NOT NULL,
    quarantined bigint NOT NULL,
    gaps bigint NOT NULL,
    ids_read bigint NOT NULL DEFAULT 0,
    ids_other bigint NOT NULL DEFAULT 0,
    ids_gone bigint NOT NULL DEFAULT 0,
    ids_up_to bigint,
    CONSTRAINT feed_days_pkey PRIMARY KEY (feed, day)
) WITH (fillfactor = 50);
COMMENT ON COLUMN feed_days.day IS 'UTC day of the polls, not of the posts';
COMMENT ON COLUMN feed_days.posts IS 'posts read and stored, including late ones';
COMMENT ON COLUMN feed_days.late IS 'posts that became visible after the feed had passed their time';
COMMENT ON COLUMN feed_days.gone IS 'stored posts that the platform reported as deleted';
COMMENT ON COLUMN feed_days.ids_read IS 'ids whose posts were read, counted on the day on which they were checked';
COMMENT ON COLUMN feed_days.ids_other IS 'ids of items that the feed does not have, such as comments';
COMMENT ON COLUMN feed_days.ids_gone IS 'ids of deleted and dead items';
COMMENT ON COLUMN feed_days.ids_up_to IS 'every id up to this one was accounted for or missing; NULL where the feed has no such ids';

-- Periods whose posts may be missing. Written with feed_days; the newest 100 of a feed.
CREATE TABLE feed_gaps (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT feed_gaps_pkey PRIMARY KEY,
    feed text NOT NULL,
    find_time timestamptz NOT NULL,
    start_time timestamptz,
    end_time timestamptz NOT NULL,
    reason text NOT NULL,
    fill_time timestamptz
);
CREATE INDEX feed_gaps_feed_idx ON feed_gaps (feed, id);
COMMENT ON COLUMN feed_gaps.start_time IS 'NULL where the platform does not say from when on posts are missing';
COMMENT ON COLUMN feed_gaps.fill_time IS 'when a later reading had read the whole period; NULL while it is open';

-- Ids without an item on their platform. Written with feed_days, and deleted when the id is explained.
CREATE TABLE feed_missing_ids (
    feed text NOT NULL,
    id bigint NOT NULL,
    miss_time timestamptz NOT NULL,
    CONSTRAINT feed_missing_ids_pkey PRIMARY KEY (feed, id)
);
COMMENT ON COLUMN feed_missing_ids.miss_time IS 'when the id was first found missing';

-- Posts that could not be read or stored, and were skipped so that their feed goes on. Written in the transaction that
-- moves the feed's cursor, so that each is recorded once; the newest 100 of a feed, for 30 days. There is no index on
-- the time: the table stays small, and old rows are deleted a few times a day.
CREATE TABLE quarantined_posts (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT quarantined_posts_pkey PRIMARY KEY,
    feed text NOT NULL,
    quarantine_time timestamptz NOT NULL,
    kind text NOT NULL CONSTRAINT quarantined_posts_kind_check CHECK (kind IN ('UNREADABLE', 'REFUSED', 'UNFIT')),
    post_id text,
    reason text NOT NULL
);
CREATE INDEX quarantined_posts_feed_idx ON quarantined_posts (feed, id);
COMMENT ON COLUMN quarantined_posts.kind IS 'UNREADABLE: an item of the platform''s answer; REFUSED: by this database';
COMMENT ON COLUMN quarantined_posts.post_id IS 'UNREADABLE: the platform''s own id; REFUSED: the id of the post; NULL where it has none';

-- What may still be asked of a platform under one credential, by all scanners together. Scanners lease points from it
-- as the gateway does (crates/store/src/rates/ledger.rs). One row per credential.
CREATE TABLE platform_budgets (
    credential text CONSTRAINT platform_budgets_pkey PRIMARY KEY,
    ledger jsonb NOT NULL DEFAULT '{"leases": [], "spent": []}',
    silent_until timestamptz,
    day date,
    day_posts integer NOT NULL DEFAULT 0
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
COMMENT ON COLUMN platform_budgets.credential IS 'the kind of platform, its host, and a hash of who asks';
COMMENT ON COLUMN platform_budgets.ledger IS 'requests that are leased or were made, and until when each counts';
COMMENT ON COLUMN platform_budgets.silent_until IS 'the platform said that nothing is left until then';
COMMENT ON COLUMN platform_budgets.day IS 'the UTC day of day_posts: posts that are paid for singly, taken that day';

-- What each account has taken of a platform's paid posts, so that no account spends the share of another. Written in
-- the transaction that takes them, under the lock of the credential's row in platform_budgets. One row for each account
-- and credential.
CREATE TABLE platform_budget_shares (
    credential text NOT NULL CONSTRAINT platform_budget_shares_credential_fkey
        REFERENCES platform_budgets (credential) ON DELETE CASCADE,
    account_id uuid NOT NULL CONSTRAINT platform_budget_shares_account_fkey
        REFERENCES accounts (id) ON DELETE CASCADE,
    day date NOT NULL,
    day_posts integer NOT NULL,
    CONSTRAINT platform_budget_shares_pkey PRIMARY KEY (credential, account_id)
) WITH (fillfactor = 50);
COMMENT ON COLUMN platform_budget_shares.day IS 'the UTC day of day_posts';
