-- Service events, for Connections that ask for them (ADR 0071). A row is written in the transaction of its cause, by any
-- service, if a Connection of its Namespace asks for its type. The dispatcher moves its content into deliveries, one for
-- each such Connection, and deletes it.
CREATE TABLE service_events (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT service_events_pkey PRIMARY KEY,
    namespace_id uuid NOT NULL,
    event_type text NOT NULL,
    name text NOT NULL,
    details jsonb NOT NULL,
    create_time timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
COMMENT ON COLUMN service_events.event_type IS 'of domain::ServiceEventType';
COMMENT ON COLUMN service_events.name IS 'of the resource that it is about';
COMMENT ON COLUMN service_events.details IS 'the fields that only its type has';

ALTER TABLE connections ADD COLUMN events text[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN connections.events IS 'types of the service events that it receives';

ALTER TABLE deliveries ADD COLUMN event jsonb;
COMMENT ON COLUMN deliveries.event IS 'the body of a service event; NULL for a Scan';
ALTER TABLE deliveries ALTER COLUMN manager_id DROP NOT NULL;
ALTER TABLE deliveries ALTER COLUMN scan_id DROP NOT NULL;
ALTER TABLE deliveries ADD CONSTRAINT deliveries_subject_check
    CHECK (num_nulls(manager_id, scan_id) = CASE WHEN event IS NULL THEN 0 ELSE 2 END) NOT VALID;
