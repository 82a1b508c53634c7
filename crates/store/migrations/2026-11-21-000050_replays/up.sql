-- Deliveries that a person reopens, and the jobs that reopen many of them: `:retry` and `:replay`.
-- Written by the gateway, and by the dispatcher that works off a replay.
ALTER TABLE deliveries
    ADD COLUMN urgent boolean NOT NULL DEFAULT false,
    ADD COLUMN schedule_base integer NOT NULL DEFAULT 0,
    ADD COLUMN reopen_time timestamptz,
    ADD COLUMN reopen_asked boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN deliveries.urgent IS 'a person asked for it: due past an open breaker; cleared by the next result';
COMMENT ON COLUMN deliveries.schedule_base IS
    'attempt_count when it was last reopened: retries are scheduled by the attempts since';
COMMENT ON COLUMN deliveries.reopen_time IS 'when it was last reopened; its greatest age counts from then';
COMMENT ON COLUMN deliveries.reopen_asked IS 'asked for while its request was open: the result reopens it';

-- Usually empty: what people ask for is claimed within the second.
CREATE INDEX deliveries_urgent_idx ON deliveries (next_attempt_time) WHERE urgent AND state IN ('PENDING', 'RETRYING');
-- What did not get through, for the log, in the collation that lists compare by. Entered once, when a
-- delivery is given up.
CREATE INDEX deliveries_given_up_idx ON deliveries (namespace_id, connection_id, state COLLATE "C", create_time, id)
    WHERE state COLLATE "C" IN ('EXHAUSTED', 'CANCELLED');

-- One row a `:replay`. A dispatcher takes the next that is due, reopens a batch, and moves the place on in
-- the same transaction: so every delivery of the window is reopened once, whoever dies.
CREATE TABLE replays (
    namespace_id uuid NOT NULL,
    connection_id uuid NOT NULL,
    id uuid NOT NULL,
    create_time timestamptz NOT NULL,
    update_time timestamptz NOT NULL,
    start_time timestamptz NOT NULL,
    end_time timestamptz NOT NULL,
    states text[],
    state text NOT NULL DEFAULT 'RUNNING'
        CONSTRAINT replays_state_check CHECK (state IN ('RUNNING', 'DONE', 'CANCELLED')),
    total bigint NOT NULL,
    counted boolean NOT NULL,
    done bigint NOT NULL DEFAULT 0,
    place_time timestamptz NOT NULL,
    place_id uuid NOT NULL,
    next_batch_time timestamptz NOT NULL,
    CONSTRAINT replays_pkey PRIMARY KEY (namespace_id, connection_id, id),
    CONSTRAINT replays_connection_fkey FOREIGN KEY (namespace_id, connection_id)
        REFERENCES connections (namespace_id, id) ON DELETE CASCADE,
    CONSTRAINT replays_window_check CHECK (start_time <= end_time)
);
CREATE INDEX replays_list_idx ON replays (namespace_id, connection_id, create_time, id);
CREATE INDEX replays_due_idx ON replays (next_batch_time) WHERE state = 'RUNNING';
COMMENT ON COLUMN replays.states IS 'of the deliveries to reopen; NULL for all';
COMMENT ON COLUMN replays.counted IS 'whether total is exact; until the dispatcher has counted, it is at least so many';
COMMENT ON COLUMN replays.place_time IS 'create_time of the last delivery that was looked at; with place_id the place';
