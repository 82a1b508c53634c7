ALTER TABLE scan_likes DROP COLUMN silent;
