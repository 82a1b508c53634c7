-- One delivery per Scan and Connection, and every attempt made for it. Written by the dispatcher.
-- Partitioned by week; a partition with unfinished rows is never dropped.
CREATE TABLE deliveries (
    namespace_id uuid NOT NULL,
    connection_id uuid NOT NULL,
    id uuid NOT NULL,
    create_time timestamptz NOT NULL,
    update_time timestamptz NOT NULL,
    manager_id uuid NOT NULL,
    scan_id uuid NOT NULL,
    state text NOT NULL CONSTRAINT deliveries_state_check
        CHECK (state IN ('PENDING', 'IN_FLIGHT', 'SUCCEEDED', 'RETRYING', 'EXHAUSTED', 'CANCELLED')),
    attempt_count integer NOT NULL DEFAULT 0,
    last_attempt_time timestamptz,
    next_attempt_time timestamptz,
    leased_by uuid,
    last_status_code smallint,
    last_error text,
    CONSTRAINT deliveries_pkey PRIMARY KEY (namespace_id, connection_id, create_time, id),
    CONSTRAINT deliveries_next_attempt_check CHECK ((next_attempt_time IS NOT NULL) = (state IN ('PENDING', 'RETRYING'))),
    CONSTRAINT deliveries_lease_check CHECK ((leased_by IS NOT NULL) = (state = 'IN_FLIGHT'))
) PARTITION BY RANGE (create_time);
CREATE INDEX deliveries_due_idx ON deliveries (next_attempt_time) WHERE state IN ('PENDING', 'RETRYING');
CREATE INDEX deliveries_due_by_connection_idx ON deliveries (namespace_id, connection_id, next_attempt_time)
    WHERE state IN ('PENDING', 'RETRYING');
CREATE INDEX deliveries_in_flight_idx ON deliveries (leased_by) WHERE state = 'IN_FLIGHT';
CREATE INDEX deliveries_scan_idx ON deliveries (namespace_id, manager_id, scan_id);
COMMENT ON COLUMN deliveries.leased_by IS 'the replica that has the request open; free when its heartbeat is old';

CREATE TABLE delivery_attempts (
    delivery_id uuid NOT NULL,
    number integer NOT NULL,
    time timestamptz NOT NULL,
    status_code smallint,
    error text,
    latency_ms integer NOT NULL,
    dns_ms integer,
    connect_ms integer,
    tls_ms integer,
    first_byte_ms integer,
    address text,
    response_body text,
    CONSTRAINT delivery_attempts_pkey PRIMARY KEY (delivery_id, time, number)
) PARTITION BY RANGE (time);
COMMENT ON COLUMN delivery_attempts.number IS 'from 1, over all reopenings of the delivery';
