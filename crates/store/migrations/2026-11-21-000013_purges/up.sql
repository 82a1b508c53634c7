-- What was deleted and still has rows in the tables that are too large to be emptied at once. Written by
-- the gateway in the transaction of the deletion; taken by any replica of any service, which deletes a
-- batch and, when nothing has been left for a while, the row here.
CREATE TABLE purges (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT purges_pkey PRIMARY KEY,
    namespace_id uuid NOT NULL,
    manager_id uuid,
    connection_id uuid,
    create_time timestamptz NOT NULL DEFAULT clock_timestamp(),
    next_time timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT purges_subject_check CHECK (manager_id IS NULL OR connection_id IS NULL)
);
COMMENT ON COLUMN purges.manager_id IS 'the Manager that is gone; without it and a Connection, all of the Namespace';
CREATE INDEX purges_due_idx ON purges (next_time);
COMMENT ON COLUMN purges.next_time IS 'when to look again: at once while there is something, later for what writers in flight may leave';
