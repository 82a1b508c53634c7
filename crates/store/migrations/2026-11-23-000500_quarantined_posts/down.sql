ALTER TABLE feeds
    DROP COLUMN quarantine_reason,
    DROP COLUMN quarantine_time,
    DROP COLUMN quarantine_count;
DROP TABLE quarantined_posts;
