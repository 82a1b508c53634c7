DROP TABLE feed_missing_ids;
ALTER TABLE feed_days
    DROP COLUMN ids_up_to,
    DROP COLUMN ids_gone,
    DROP COLUMN ids_other,
    DROP COLUMN ids_read;
