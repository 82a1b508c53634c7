-- Serves the compiler's count of Managers whose compilation failed.
CREATE INDEX CONCURRENTLY IF NOT EXISTS managers_failed_idx ON managers (namespace_id) WHERE state = 'APPLY_FAILED';
