DROP TABLE scan_likes;
ALTER TABLE scans DROP COLUMN places;
ALTER TABLE managers DROP COLUMN duplicates, DROP COLUMN kinds;
