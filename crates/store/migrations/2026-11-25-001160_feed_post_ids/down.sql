ALTER TABLE feeds
    DROP COLUMN ids_since,
    DROP COLUMN late_reading;
DROP TABLE feed_post_ids;
