-- Digests: Scans that wait for the mail of their hour or day. The gateway says which Connections have them; the dispatcher gathers
-- Scans instead of making a delivery of each, and makes one delivery of those of a period.
ALTER TABLE connections
    ADD COLUMN digest text,
    ADD COLUMN time_zone text NOT NULL DEFAULT 'UTC',
    ADD CONSTRAINT connections_digest_check CHECK (digest IN ('HOURLY', 'DAILY')) NOT VALID;
COMMENT ON COLUMN connections.digest IS 'for e-mail: how long Scans are gathered; NULL if each is sent at once';
COMMENT ON COLUMN connections.time_zone IS 'where the hours and days of digests begin';

-- Digests whose deliveries may still be cancelled.
CREATE TABLE digests (
    delivery_id uuid NOT NULL CONSTRAINT digests_pkey PRIMARY KEY,
    namespace_id uuid NOT NULL,
    connection_id uuid NOT NULL,
    CONSTRAINT digests_connection_fkey FOREIGN KEY (namespace_id, connection_id)
        REFERENCES connections (namespace_id, id) ON DELETE CASCADE
);
CREATE INDEX digests_connection_idx ON digests (namespace_id, connection_id);

CREATE TABLE digest_scans (
    namespace_id uuid NOT NULL,
    connection_id uuid NOT NULL,
    manager_id uuid NOT NULL,
    scan_id uuid NOT NULL,
    create_time timestamptz NOT NULL,
    delivery_id uuid,
    CONSTRAINT digest_scans_pkey PRIMARY KEY (namespace_id, connection_id, manager_id, scan_id),
    CONSTRAINT digest_scans_connection_fkey FOREIGN KEY (namespace_id, connection_id)
        REFERENCES connections (namespace_id, id) ON DELETE CASCADE
);
CREATE INDEX digest_scans_gathered_idx ON digest_scans (connection_id, create_time) WHERE delivery_id IS NULL;
CREATE INDEX digest_scans_delivery_idx ON digest_scans (delivery_id, scan_id) WHERE delivery_id IS NOT NULL;
COMMENT ON COLUMN digest_scans.create_time IS 'when the Scan was gathered';
COMMENT ON COLUMN digest_scans.delivery_id IS 'the digest that has the Scan; NULL while it waits for one';
