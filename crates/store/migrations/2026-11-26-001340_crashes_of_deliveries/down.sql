ALTER TABLE deliveries DROP COLUMN crash_count;
