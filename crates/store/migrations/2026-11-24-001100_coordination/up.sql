-- What replicas of all services share: who is alive, events to publish, rows to delete.

-- Replicas of every service with their heartbeats. A lease belongs to a replica; its leases are free when its heartbeat
-- is four seconds old. Each replica renews its own row every second.
CREATE TABLE replicas (
    id uuid CONSTRAINT replicas_pkey PRIMARY KEY,
    service text NOT NULL,
    heartbeat_time timestamptz NOT NULL
);

-- Events on their way to the bus: written in the transaction of the change; the relay of any service publishes them with
-- confirms and then deletes them. Usually empty.
CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT outbox_pkey PRIMARY KEY,
    event text NOT NULL,
    message_id uuid NOT NULL,
    payload bytea NOT NULL,
    traceparent text,
    tracestate text,
    create_time timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
COMMENT ON COLUMN outbox.event IS 'the routing key, such as `scan.created`';
COMMENT ON COLUMN outbox.payload IS 'an encoded earshot.events.v1.Envelope';

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
