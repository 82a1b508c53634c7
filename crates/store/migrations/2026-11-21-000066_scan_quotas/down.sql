ALTER TABLE scan_clocks
    DROP COLUMN quota_day,
    DROP COLUMN quota_made,
    DROP COLUMN quota_suppressed,
    DROP COLUMN quota_lowest,
    DROP COLUMN quota_highest;
