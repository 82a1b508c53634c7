DROP INDEX scans_judged_idx;
DROP INDEX managers_recompile_idx;
ALTER TABLE managers DROP COLUMN recompile_after;
