ALTER TABLE backfills DROP COLUMN catch_up_since;
DROP INDEX scan_clocks_refused_idx;
ALTER TABLE scan_clocks DROP COLUMN refused_since, DROP COLUMN refused_time;
ALTER TABLE accounts DROP COLUMN quota_scans_per_day;
DROP TABLE account_days;
