-- Serves the compiler's look for Managers that may have ended earlier compilers.
CREATE INDEX CONCURRENTLY IF NOT EXISTS managers_crashed_idx
    ON managers (mode) WHERE state = 'PENDING_APPLY' AND crash_count > 0;
