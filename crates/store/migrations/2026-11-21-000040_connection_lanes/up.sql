-- What all dispatchers know together of each Connection: when to look for what waits for it, its circuit
-- breaker, its rate. Written by dispatchers when something fails, waits or is rate limited; of a Connection
-- that is well nothing is written. One row a Connection, made with it and gone with it, by the triggers below,
-- so that whoever makes or enables a Connection has nothing to remember.
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
-- By account, so that a claim can go round them in turn, whatever waits for each.
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

INSERT INTO connection_lanes (namespace_id, connection_id, account_id, next_due_time)
SELECT c.namespace_id, c.id, n.account_id, clock_timestamp()
FROM connections AS c JOIN namespaces AS n ON n.id = c.namespace_id;

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

-- An enabled Connection, or one that leads elsewhere from now on, starts anew: closed breaker, a clean
-- record, and a look at what waits.
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
CREATE TRIGGER connections_renew_lane AFTER UPDATE OF state, url ON connections
    FOR EACH ROW WHEN (NEW.state = 'ACTIVE' AND (OLD.state <> 'ACTIVE' OR NEW.url <> OLD.url))
    EXECUTE FUNCTION renew_connection_lane();

-- Claims go by Connection (deliveries_due_by_connection_idx), never oldest-first over all: nothing reads this.
DROP INDEX deliveries_due_idx;
