DROP TABLE digest_scans;
DROP TABLE digests;
ALTER TABLE connections
    DROP CONSTRAINT connections_digest_check,
    DROP COLUMN time_zone,
    DROP COLUMN digest;
