ALTER TABLE api_keys
    DROP COLUMN networks,
    DROP COLUMN last_use_time;
