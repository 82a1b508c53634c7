-- Counts the dispatchers that died while they sent a delivery, which may be what ended them.
ALTER TABLE deliveries ADD COLUMN crash_count smallint NOT NULL DEFAULT 0;
COMMENT ON COLUMN deliveries.crash_count IS 'replicas in a row that died while they held the lease';
