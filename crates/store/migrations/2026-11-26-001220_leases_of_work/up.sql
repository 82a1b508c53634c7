-- Counts the processes that died with an item of work in hand, and leases kinds of work without columns for it.
ALTER TABLE feeds ADD COLUMN crash_count smallint NOT NULL DEFAULT 0;
ALTER TABLE managers ADD COLUMN crash_count smallint NOT NULL DEFAULT 0;
ALTER TABLE look_backs ADD COLUMN crash_count smallint NOT NULL DEFAULT 0;
ALTER TABLE rechecks ADD COLUMN crash_count smallint NOT NULL DEFAULT 0;
COMMENT ON COLUMN feeds.crash_count IS 'replicas in a row that died while they held the lease';
COMMENT ON COLUMN managers.crash_count IS 'replicas in a row that died while they compiled compiled_generation';
COMMENT ON COLUMN look_backs.crash_count IS 'replicas in a row that died while they held the lease';
COMMENT ON COLUMN rechecks.crash_count IS 'replicas in a row that died while they held the lease';

CREATE TABLE leases (
    kind text NOT NULL,
    key text NOT NULL,
    leased_by uuid,
    crash_count smallint NOT NULL DEFAULT 0,
    next_time timestamptz NOT NULL DEFAULT clock_timestamp(),
    error text,
    PRIMARY KEY (kind, key)
);
COMMENT ON TABLE leases IS 'items of background work that a replica has in hand, or that are set aside';
COMMENT ON COLUMN leases.leased_by IS 'the replica that works on the item; void when its heartbeat has ended';
COMMENT ON COLUMN leases.crash_count IS 'replicas in a row that died while they held the lease';
COMMENT ON COLUMN leases.next_time IS 'when an item that was set aside is tried again';
