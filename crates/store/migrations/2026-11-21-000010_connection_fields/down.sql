ALTER TABLE connections
    DROP COLUMN max_per_second,
    DROP COLUMN signing_secrets_sealed,
    DROP COLUMN format;
