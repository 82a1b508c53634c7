-- Serves the scanner's look for due look-backs, by Namespace.
CREATE INDEX CONCURRENTLY IF NOT EXISTS backfills_reading_idx
    ON backfills (namespace_id, look_back_id) WHERE look_back_id IS NOT NULL;
