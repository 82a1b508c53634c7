-- Gateways store the last use of a key each minute, not every ten minutes.
COMMENT ON COLUMN api_keys.last_use_time IS 'about a minute old at most; NULL if the key was never used';
