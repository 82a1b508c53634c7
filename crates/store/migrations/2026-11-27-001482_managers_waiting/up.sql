-- Serves the compiler's look for waiting Managers, by Namespace and then by the time since when they wait.
CREATE INDEX CONCURRENTLY IF NOT EXISTS managers_waiting_idx
    ON managers (mode, namespace_id, submit_time) WHERE state = 'PENDING_APPLY';
