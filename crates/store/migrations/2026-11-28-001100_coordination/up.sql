-- What replicas of all services share: who is alive, who works on what, rows to delete.

-- Replicas of every service with their heartbeats. A lease belongs to a replica; its leases are free when its heartbeat
-- is four seconds old. Each replica renews its own row every second.
CREATE TABLE replicas (
    id uuid CONSTRAINT replicas_pkey PRIMARY KEY,
    service text NOT NULL,
    heartbeat_time timestamptz NOT NULL
);

-- Kinds of background work whose items have no columns for a lease.
CREATE TABLE leases (
    kind text NOT NULL,
    key text NOT NULL,
    leased_by uuid,
    crash_count smallint NOT NULL DEFAULT 0,
    next_time timestamptz NOT NULL DEFAULT clock_timestamp(),
    error text,
    CONSTRAINT leases_pkey PRIMARY KEY (kind, key)
);
COMMENT ON TABLE leases IS 'items of background work that a replica has in hand, or that are set aside';
COMMENT ON COLUMN leases.leased_by IS 'the replica that works on the item; void when its heartbeat has ended';
COMMENT ON COLUMN leases.crash_count IS 'replicas in a row that died while they held the lease';
COMMENT ON COLUMN leases.next_time IS 'when an item that was set aside is tried again';

-- What was deleted and still has rows in tables that are too large to be emptied at once. Written by the gateway in the
-- transaction of the deletion. A replica of any service takes a row and deletes a batch; when nothing has been left for
-- a while, it deletes the row here.
CREATE TABLE purges (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT purges_pkey PRIMARY KEY,
    namespace_id uuid NOT NULL,
    manager_id uuid,
    connection_id uuid,
    create_time timestamptz NOT NULL DEFAULT clock_timestamp(),
    next_time timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT purges_subject_check CHECK (manager_id IS NULL OR connection_id IS NULL)
);
CREATE INDEX purges_due_idx ON purges (next_time);
COMMENT ON COLUMN purges.manager_id IS 'the Manager that is gone; without it and a Connection, all of the Namespace';
COMMENT ON COLUMN purges.next_time IS 'when to look again: at once while there is something, later for what writers in flight may leave';
