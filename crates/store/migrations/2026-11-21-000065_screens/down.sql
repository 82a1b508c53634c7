ALTER TABLE managers DROP COLUMN max_scans_per_day, DROP COLUMN languages, DROP COLUMN mutes;
DROP INDEX namespaces_muting_idx;
ALTER TABLE namespaces DROP COLUMN mutes;
