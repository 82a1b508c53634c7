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
