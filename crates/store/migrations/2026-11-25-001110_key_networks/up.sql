-- Where API keys may be used from, written by `earshot keys`, and when they last were, written by the gateway.
ALTER TABLE api_keys
    ADD COLUMN networks text[],
    ADD COLUMN last_use_time timestamptz;
COMMENT ON COLUMN api_keys.networks IS 'networks in CIDR notation that the key may be used from; NULL for all';
COMMENT ON COLUMN api_keys.last_use_time IS 'up to ten minutes old; NULL if the key was never used';
