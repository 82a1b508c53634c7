-- Deliveries of Scans to Connections, and requests of people for more of them. Written by the dispatcher; the gateway
-- reopens deliveries and inserts replays and tests.

-- One delivery per Scan and Connection. Partitioned by week; a partition with unfinished rows is never dropped.
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
    urgent boolean NOT NULL DEFAULT false,
    schedule_base integer NOT NULL DEFAULT 0,
    reopen_time timestamptz,
    reopen_asked boolean NOT NULL DEFAULT false,
    traceparent text,
    crash_count smallint NOT NULL DEFAULT 0,
    CONSTRAINT deliveries_pkey PRIMARY KEY (namespace_id, connection_id, create_time, id),
    CONSTRAINT deliveries_next_attempt_check CHECK ((next_attempt_time IS NOT NULL) = (state IN ('PENDING', 'RETRYING'))),
    CONSTRAINT deliveries_lease_check CHECK ((leased_by IS NOT NULL) = (state = 'IN_FLIGHT'))
) PARTITION BY RANGE (create_time);
CREATE INDEX deliveries_due_by_connection_idx ON deliveries (namespace_id, connection_id, next_attempt_time)
    WHERE state IN ('PENDING', 'RETRYING');
CREATE INDEX deliveries_in_flight_idx ON deliveries (leased_by) WHERE state = 'IN_FLIGHT';
CREATE INDEX deliveries_scan_idx ON deliveries (namespace_id, manager_id, scan_id);
-- Usually empty: what people ask for is claimed within a second.
CREATE INDEX deliveries_urgent_idx ON deliveries (next_attempt_time) WHERE urgent AND state IN ('PENDING', 'RETRYING');
-- Failed deliveries, for the log, in the collation that lists compare by and with the status, so that a filter by status
-- is answered from the index. A delivery enters it once, when it is given up.
CREATE INDEX deliveries_given_up_status_idx ON deliveries
    (namespace_id, connection_id, state COLLATE "C", create_time, id, (last_status_code::float8))
    WHERE state COLLATE "C" IN ('EXHAUSTED', 'CANCELLED');
COMMENT ON COLUMN deliveries.leased_by IS 'the replica that has the request open; free when its heartbeat is old';
COMMENT ON COLUMN deliveries.urgent IS 'a person asked for it: due past an open breaker; cleared by the next result';
COMMENT ON COLUMN deliveries.schedule_base IS
    'attempt_count when it was last reopened: retries are scheduled by the attempts since';
COMMENT ON COLUMN deliveries.reopen_time IS 'when it was last reopened; its greatest age counts from then';
COMMENT ON COLUMN deliveries.reopen_asked IS 'asked for while its request was open: the result reopens it';
COMMENT ON COLUMN deliveries.traceparent IS 'the span that made it, where that is traced: the first attempt goes on with it, later ones are linked to it';
COMMENT ON COLUMN deliveries.crash_count IS 'replicas in a row that died while they held the lease';

-- Every attempt of a delivery.
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

SELECT ensure_partitions(parent, clock_timestamp() - interval '7 days', 6)
FROM unnest(ARRAY['deliveries', 'delivery_attempts']) AS parent;

-- What all dispatchers share about each Connection: when to look for waiting deliveries, its circuit breaker, its rate.
-- Written when something fails, waits or is rate limited; nothing is written for a Connection that works. One row per
-- Connection, created by a trigger and deleted with it, so that no query that creates or enables a Connection can
-- forget it.
CREATE TABLE connection_lanes (
    namespace_id uuid NOT NULL,
    connection_id uuid NOT NULL,
    account_id uuid NOT NULL,
    next_due_time timestamptz,
    failure_streak integer NOT NULL DEFAULT 0,
    recent_outcomes integer NOT NULL DEFAULT 0,
    recent_count smallint NOT NULL DEFAULT 0
        CONSTRAINT connection_lanes_recent_count_check CHECK (recent_count BETWEEN 0 AND 20),
    open_until timestamptz,
    open_count integer NOT NULL DEFAULT 0,
    probed_by uuid,
    probe_end_time timestamptz,
    last_success_time timestamptz,
    failing_since timestamptz,
    rate_time timestamptz,
    CONSTRAINT connection_lanes_pkey PRIMARY KEY (namespace_id, connection_id),
    CONSTRAINT connection_lanes_connection_fkey FOREIGN KEY (namespace_id, connection_id)
        REFERENCES connections (namespace_id, id) ON DELETE CASCADE,
    CONSTRAINT connection_lanes_probe_check CHECK ((probed_by IS NULL) = (probe_end_time IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
-- By account, so that a claim can take accounts in turn, however much waits for each.
CREATE INDEX connection_lanes_due_idx ON connection_lanes (account_id, next_due_time) WHERE next_due_time IS NOT NULL;
COMMENT ON COLUMN connection_lanes.next_due_time IS
    'when a dispatcher is to look for what waits: never later than something may be sent, sometimes earlier';
COMMENT ON COLUMN connection_lanes.failure_streak IS 'attempts that failed since the last success';
COMMENT ON COLUMN connection_lanes.recent_outcomes IS 'a bit for each of the last attempts, 1 is a failure, the newest lowest';
COMMENT ON COLUMN connection_lanes.recent_count IS 'how many of those bits are told, 20 at most';
COMMENT ON COLUMN connection_lanes.open_until IS
    'the circuit breaker is open: nothing is sent before, then one probe; NULL is closed';
COMMENT ON COLUMN connection_lanes.open_count IS 'openings in a row, by which the wait doubles';
COMMENT ON COLUMN connection_lanes.probed_by IS 'the replica that has the one probe in hand, until probe_end_time at most';
COMMENT ON COLUMN connection_lanes.last_success_time IS 'to about a minute';
COMMENT ON COLUMN connection_lanes.failing_since IS 'the first failure after the last success';
COMMENT ON COLUMN connection_lanes.rate_time IS 'up to when the seconds of maxPerSecond are spent, by all replicas together';

CREATE FUNCTION make_connection_lane() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO connection_lanes (namespace_id, connection_id, account_id)
    SELECT NEW.namespace_id, NEW.id, n.account_id FROM namespaces AS n WHERE n.id = NEW.namespace_id;
    RETURN NULL;
END
$$;
CREATE TRIGGER connections_make_lane AFTER INSERT ON connections
    FOR EACH ROW EXECUTE FUNCTION make_connection_lane();

-- A Connection that is enabled, or gets another address, starts again: closed breaker, no failures, and a look at what
-- waits.
CREATE FUNCTION renew_connection_lane() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE connection_lanes SET next_due_time = clock_timestamp(), failure_streak = 0, recent_outcomes = 0,
        recent_count = 0, open_until = NULL, open_count = 0, probed_by = NULL, probe_end_time = NULL,
        failing_since = NULL
    WHERE namespace_id = NEW.namespace_id AND connection_id = NEW.id;
    RETURN NULL;
END
$$;
-- Addresses are stored in url_sealed, so a new one changes that column. A key rotation changes it too, but it keeps
-- update_time: the address is the same, and its circuit breaker must stay open.
CREATE TRIGGER connections_renew_lane AFTER UPDATE OF state, url, url_sealed ON connections
    FOR EACH ROW WHEN (NEW.state = 'ACTIVE' AND (OLD.state <> 'ACTIVE' OR (
        (NEW.url, NEW.url_sealed) IS DISTINCT FROM (OLD.url, OLD.url_sealed)
        AND NEW.update_time <> OLD.update_time)))
    EXECUTE FUNCTION renew_connection_lane();

-- One row per `:replay`. A dispatcher takes the next one that is due, reopens a batch, and saves its place in the same
-- transaction. So every delivery of the window is reopened once, even if a dispatcher dies.
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

-- Requests for one sample event, `:test`, and their results. The gateway inserts the row and waits for the answer; a
-- dispatcher takes the row and answers. Rows are deleted after a minute: no request waits longer.
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
