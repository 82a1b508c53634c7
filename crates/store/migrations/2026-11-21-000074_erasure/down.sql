DROP TABLE rechecks;
ALTER TABLE posts DROP COLUMN erase_time;
