-- How far a Manager with `max_scans_per_day` is through its day (UTC): in the row that whoever makes
-- Scans of it holds to the commit, so that the bound is one for all scanners. Written by the scanner.
ALTER TABLE scan_clocks
    ADD COLUMN quota_day date,
    ADD COLUMN quota_made integer NOT NULL DEFAULT 0,
    ADD COLUMN quota_suppressed integer NOT NULL DEFAULT 0,
    ADD COLUMN quota_lowest double precision,
    ADD COLUMN quota_highest double precision;
COMMENT ON COLUMN scan_clocks.quota_day IS 'the day that the other quota columns are of';
COMMENT ON COLUMN scan_clocks.quota_suppressed IS 'matches of that day of which no Scan was made';
COMMENT ON COLUMN scan_clocks.quota_lowest IS 'the lowest score of that day''s matches, suppressed ones too';
