-- Counters that the gateway reads for `stats`; it never counts the rows themselves. The scanner and the dispatcher
-- append deltas in the transactions of the counted events. A background task of any service adds them to the points
-- (store::stats).

-- Written only by INSERT, so that no two transactions wait for each other's counter. Nearly empty while a service folds.
CREATE TABLE stats_deltas (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT stats_deltas_pkey PRIMARY KEY,
    feed text,
    namespace_id uuid,
    subject_id uuid,
    time timestamptz NOT NULL,
    counts jsonb NOT NULL,
    CONSTRAINT stats_deltas_subject_check CHECK (
        (feed IS NULL) = (subject_id IS NOT NULL) AND (feed IS NULL) = (namespace_id IS NOT NULL)
    )
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
COMMENT ON COLUMN stats_deltas.subject_id IS 'the Manager or Connection; else it is of `feed`';
COMMENT ON COLUMN stats_deltas.time IS 'the minute in which it happened';
COMMENT ON COLUMN stats_deltas.counts IS 'a store::stats::Counts';

-- Points of Managers, of Connections and, under the Namespace's own id, of a whole Namespace.
CREATE TABLE stats (
    namespace_id uuid NOT NULL,
    subject_id uuid NOT NULL,
    interval_seconds integer NOT NULL
        CONSTRAINT stats_interval_check CHECK (interval_seconds IN (60, 3600, 86400)),
    time timestamptz NOT NULL,
    counts jsonb NOT NULL,
    CONSTRAINT stats_pkey PRIMARY KEY (namespace_id, subject_id, interval_seconds, time)
) WITH (fillfactor = 80);
CREATE INDEX stats_retention_idx ON stats (interval_seconds, time);

-- Posts read from a feed, once for all Managers that watch it. A Manager's figures are summed when they are read.
CREATE TABLE feed_stats (
    feed text NOT NULL,
    interval_seconds integer NOT NULL
        CONSTRAINT feed_stats_interval_check CHECK (interval_seconds IN (60, 3600, 86400)),
    time timestamptz NOT NULL,
    posts bigint NOT NULL,
    CONSTRAINT feed_stats_pkey PRIMARY KEY (feed, interval_seconds, time)
) WITH (fillfactor = 80);
CREATE INDEX feed_stats_retention_idx ON feed_stats (interval_seconds, time);
