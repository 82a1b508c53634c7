-- Managers that are matched against posts of the past: at their first apply, and by `:backfill`.

-- Polls of a feed further back, in addition to its new posts and with their own cursor. Each serves all Managers that
-- asked before it began. Written by the scanner that holds the lease.
CREATE TABLE look_backs (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT look_backs_pkey PRIMARY KEY,
    feed text NOT NULL,
    notify boolean NOT NULL,
    since timestamptz NOT NULL,
    cursor jsonb,
    reach_time timestamptz,
    next_time timestamptz NOT NULL DEFAULT clock_timestamp(),
    leased_by uuid,
    failure_count integer NOT NULL DEFAULT 0,
    create_time timestamptz NOT NULL DEFAULT clock_timestamp(),
    crash_count smallint NOT NULL DEFAULT 0
);
CREATE INDEX look_backs_due_idx ON look_backs (next_time);
CREATE INDEX look_backs_feed_idx ON look_backs (feed);
-- Serves the scanner's look for look-backs that may have ended earlier scanners.
CREATE INDEX look_backs_crashed_idx ON look_backs (id) WHERE crash_count > 0;
COMMENT ON COLUMN look_backs.reach_time IS 'posts before it could not be had; NULL while nothing was amiss';
COMMENT ON COLUMN look_backs.crash_count IS 'replicas in a row that died while they held the lease';

-- Rows are created in the transaction that applies or asks. First the kept posts are matched; if these do not reach back
-- far enough, the backfill joins a row of look_backs. A backfill whose Scans cannot be stored is tried again with
-- growing pauses and then set to FAILED with the reason, so that it does not block others.
CREATE TABLE backfills (
    namespace_id uuid NOT NULL,
    manager_id uuid NOT NULL,
    feed text NOT NULL,
    notify boolean NOT NULL,
    since timestamptz,
    state text NOT NULL DEFAULT 'WAITING'
        CONSTRAINT backfills_state_check CHECK (state IN ('WAITING', 'READING', 'DONE', 'FAILED')),
    look_back_id bigint CONSTRAINT backfills_look_back_fkey REFERENCES look_backs (id) ON DELETE SET NULL,
    before timestamptz,
    reach_time timestamptz,
    create_time timestamptz NOT NULL DEFAULT clock_timestamp(),
    update_time timestamptz NOT NULL DEFAULT clock_timestamp(),
    failure_count integer NOT NULL DEFAULT 0,
    error text,
    next_time timestamptz,
    traceparent text,
    catch_up_since timestamptz,
    CONSTRAINT backfills_pkey PRIMARY KEY (namespace_id, manager_id, feed, notify),
    CONSTRAINT backfills_manager_fkey
        FOREIGN KEY (namespace_id, manager_id) REFERENCES managers (namespace_id, id) ON DELETE CASCADE
);
CREATE INDEX backfills_waiting_idx ON backfills (create_time) WHERE state = 'WAITING';
CREATE INDEX backfills_look_back_idx ON backfills (look_back_id) WHERE look_back_id IS NOT NULL;
CREATE INDEX backfills_ended_idx ON backfills (update_time) WHERE state IN ('DONE', 'FAILED');
-- Serves the scanner's look for waiting backfills, by Namespace and then by the time since when they are due.
CREATE INDEX backfills_due_idx ON backfills (namespace_id, (coalesce(next_time, create_time))) WHERE state = 'WAITING';
-- Serves the scanner's look for due look-backs, by Namespace.
CREATE INDEX backfills_reading_idx ON backfills (namespace_id, look_back_id) WHERE look_back_id IS NOT NULL;
COMMENT ON COLUMN backfills.notify IS 'whether the Scans are delivered';
COMMENT ON COLUMN backfills.since IS 'NULL for the one at the first apply, which reaches back as scanner.backfill says';
COMMENT ON COLUMN backfills.before IS 'of a look-back, the posts from then on are others'' business: kept ones, or fresh ones';
COMMENT ON COLUMN backfills.error IS 'why it could not be stored the last time; of a FAILED one, for good';
COMMENT ON COLUMN backfills.next_time IS 'it is not tried again before; NULL while nothing has failed';
COMMENT ON COLUMN backfills.traceparent IS 'the span that asked for it, where that is traced';
COMMENT ON COLUMN backfills.catch_up_since IS 'posts from then on were refused by the quota of the account; the Manager''s own bound does not hold for them';
