-- Sign-in to the console by OpenID Connect. The gateway opens and ends sessions, which are API keys of a person with an
-- end. It may have a role that cannot write keys, so functions that run as the owner of the table do this.

ALTER TABLE api_keys ADD COLUMN person text, ADD COLUMN subject text;
-- Locks: has only keys of operators yet, which are few
CREATE INDEX api_keys_expire_time_idx ON api_keys (expire_time);
COMMENT ON COLUMN api_keys.person IS 'who signed in, as the provider names them; NULL for a key that an operator created';
COMMENT ON COLUMN api_keys.subject IS 'permanent identifier of the person at the provider; NULL without a person';

-- Sign-ins in progress. Written and purged by the gateway.
CREATE TABLE sign_ins (
    state_hash bytea CONSTRAINT sign_ins_pkey PRIMARY KEY,
    browser_hash bytea NOT NULL,
    origin text NOT NULL,
    expire_time timestamptz NOT NULL,
    sealed bytea,
    account_id uuid CONSTRAINT sign_ins_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
    role text CONSTRAINT sign_ins_role_check CHECK (role IN ('OWNER', 'EDITOR', 'VIEWER')),
    person text,
    subject text,
    CONSTRAINT sign_ins_step_check CHECK (num_nonnulls(sealed, account_id, role, person, subject) =
        CASE WHEN sealed IS NOT NULL THEN 1 WHEN person IS NULL THEN 0 ELSE 4 END)
);
CREATE INDEX sign_ins_browser_idx ON sign_ins (browser_hash);
CREATE INDEX sign_ins_origin_idx ON sign_ins (origin);
CREATE INDEX sign_ins_expire_time_idx ON sign_ins (expire_time);
COMMENT ON COLUMN sign_ins.state_hash IS 'SHA-256 of the parameter state, which the provider sends back';
COMMENT ON COLUMN sign_ins.browser_hash IS 'SHA-256 of the cookie of the browser that began';
COMMENT ON COLUMN sign_ins.origin IS 'address of the client, or the network of its IPv6 address';
COMMENT ON COLUMN sign_ins.person IS 'NULL until the provider has named the person';
COMMENT ON COLUMN sign_ins.sealed IS 'nonce and PKCE verifier; NULL once the browser has come back';

CREATE FUNCTION open_session(
    key_id uuid, of_account uuid, hash bytea, given_role text, named text, identified text, lasts interval)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    -- Compared as a time: for comparisons of intervals, each month has 30 days.
    ends timestamptz := clock_timestamp() + lasts;
BEGIN
    IF named IS NULL OR identified IS NULL OR ends IS NULL OR ends > clock_timestamp() + interval '24 hours' THEN
        RAISE EXCEPTION 'a session is of a person, and ends within a day';
    END IF;
    INSERT INTO api_keys (id, account_id, secret_hash, role, create_time, expire_time, person, subject)
    VALUES (key_id, of_account, hash, given_role, clock_timestamp(), ends, named, identified);
END
$$;

-- Returns false if there is no such session, or it was revoked before.
CREATE FUNCTION end_session(key_id uuid) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    UPDATE api_keys SET revoke_time = clock_timestamp()
    WHERE id = key_id AND person IS NOT NULL AND revoke_time IS NULL;
    RETURN FOUND;
END
$$;

-- Deletes sessions that ended that long ago, a day at least, and returns their number.
CREATE FUNCTION purge_sessions(ended_for interval, most integer) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    ended_before timestamptz := clock_timestamp() - ended_for;
    purged integer;
BEGIN
    IF ended_before > clock_timestamp() - interval '24 hours' THEN
        RAISE EXCEPTION 'a session is kept for a day after its end';
    END IF;
    DELETE FROM api_keys WHERE id = ANY (ARRAY(
        SELECT id FROM api_keys WHERE person IS NOT NULL AND expire_time < ended_before
        LIMIT most FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS purged = ROW_COUNT;
    RETURN purged;
END
$$;

REVOKE EXECUTE ON FUNCTION open_session(uuid, uuid, bytea, text, text, text, interval), end_session(uuid),
    purge_sessions(interval, integer) FROM PUBLIC;

DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION open_session(uuid, uuid, bytea, text, text, text, interval) SET search_path = %I, pg_temp',
        current_schema());
    EXECUTE format('ALTER FUNCTION end_session(uuid) SET search_path = %I, pg_temp', current_schema());
    EXECUTE format('ALTER FUNCTION purge_sessions(interval, integer) SET search_path = %I, pg_temp', current_schema());
END
$$;
