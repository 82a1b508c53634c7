-- Serves the scanner's look for look-backs that may have ended earlier scanners.
CREATE INDEX CONCURRENTLY IF NOT EXISTS look_backs_crashed_idx ON look_backs (id) WHERE crash_count > 0;
