DROP FUNCTION purge_sessions(interval, integer);
DROP FUNCTION end_session(uuid);
DROP FUNCTION open_session(uuid, uuid, bytea, text, text, text, interval);
DROP TABLE sign_ins;
-- Without the column, sessions would look like keys of an operator.
DELETE FROM api_keys WHERE person IS NOT NULL;
DROP INDEX api_keys_expire_time_idx;
ALTER TABLE api_keys DROP COLUMN subject, DROP COLUMN person;
