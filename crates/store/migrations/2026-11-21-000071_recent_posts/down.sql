ALTER TABLE feeds
    DROP COLUMN kept_since,
    DROP COLUMN slow,
    DROP COLUMN trouble,
    DROP COLUMN last_post_time,
    DROP COLUMN read_time,
    DROP COLUMN posts_per_day;
DROP TABLE recent_posts;
