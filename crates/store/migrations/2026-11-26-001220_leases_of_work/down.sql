DROP TABLE leases;
ALTER TABLE rechecks DROP COLUMN crash_count;
ALTER TABLE look_backs DROP COLUMN crash_count;
ALTER TABLE managers DROP COLUMN crash_count;
ALTER TABLE feeds DROP COLUMN crash_count;
