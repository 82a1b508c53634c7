-- Likenesses of Scans that nobody was sent: a post of today must not become a place of one.
ALTER TABLE scan_likes ADD COLUMN silent boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN scan_likes.silent IS 'its Scan was made of the past, without deliveries';
