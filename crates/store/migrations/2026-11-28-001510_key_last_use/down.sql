COMMENT ON COLUMN api_keys.last_use_time IS 'up to ten minutes old; NULL if the key was never used';
