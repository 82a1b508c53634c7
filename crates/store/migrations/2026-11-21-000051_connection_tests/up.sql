-- Requests for one sample event now, `:test`, and what came of them. The gateway writes the row and waits
-- for its answer, a dispatcher takes it and answers. Rows live for a minute: nobody waits longer.
CREATE TABLE connection_tests (
    id uuid CONSTRAINT connection_tests_pkey PRIMARY KEY,
    namespace_id uuid NOT NULL,
    connection_id uuid NOT NULL,
    create_time timestamptz NOT NULL,
    taken_by uuid,
    answer jsonb,
    CONSTRAINT connection_tests_connection_fkey FOREIGN KEY (namespace_id, connection_id)
        REFERENCES connections (namespace_id, id) ON DELETE CASCADE
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX connection_tests_waiting_idx ON connection_tests (create_time) WHERE taken_by IS NULL;
COMMENT ON COLUMN connection_tests.taken_by IS 'the replica that makes the request; it is made once';
COMMENT ON COLUMN connection_tests.answer IS 'as the API gives it: ok, sent, statusCode, latencyMs, error';
