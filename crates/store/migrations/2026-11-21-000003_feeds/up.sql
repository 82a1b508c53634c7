-- Replicas of every service, by their heartbeat. A lease belongs to a replica; when its heartbeat is
-- four seconds old, its leases are free. Each replica renews its own row every second.
CREATE TABLE replicas (
    id uuid CONSTRAINT replicas_pkey PRIMARY KEY,
    service text NOT NULL,
    heartbeat_time timestamptz NOT NULL
);

-- One pollable thing each, polled once for all Managers that watch it. Rows are made by whoever
-- applies a Manager; the scanner that holds the lease moves the cursor.
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
    create_time timestamptz NOT NULL
);
CREATE INDEX feeds_due_idx ON feeds (platform, next_poll_time) WHERE watched;
COMMENT ON COLUMN feeds.watched IS 'whether an enabled Manager watches it, by feed_watchers';
COMMENT ON COLUMN feeds.cursor IS 'where the last poll ended, in the form of the platform''s adapter';

CREATE TABLE feed_watchers (
    feed text NOT NULL CONSTRAINT feed_watchers_feed_fkey REFERENCES feeds (name) ON DELETE CASCADE,
    namespace_id uuid NOT NULL,
    manager_id uuid NOT NULL,
    CONSTRAINT feed_watchers_pkey PRIMARY KEY (feed, namespace_id, manager_id),
    CONSTRAINT feed_watchers_manager_fkey
        FOREIGN KEY (namespace_id, manager_id) REFERENCES managers (namespace_id, id) ON DELETE CASCADE
);
CREATE INDEX feed_watchers_manager_idx ON feed_watchers (namespace_id, manager_id);
