-- What customers create: Namespaces, Connections and Managers. Written by the gateway; the compiler writes what it
-- compiled. The Namespace's id leads every key, so that a later distribution by Namespace needs no new keys.
CREATE TABLE namespaces (
    id uuid CONSTRAINT namespaces_pkey PRIMARY KEY,
    account_id uuid NOT NULL CONSTRAINT namespaces_account_fkey REFERENCES accounts (id),
    nickname text NOT NULL,
    create_time timestamptz NOT NULL,
    update_time timestamptz NOT NULL,
    mutes jsonb NOT NULL DEFAULT '[]'
        CONSTRAINT namespaces_mutes_check CHECK (jsonb_typeof(mutes) = 'array' AND jsonb_array_length(mutes) <= 200),
    content_bytes integer
);
CREATE INDEX namespaces_list_idx ON namespaces (account_id, create_time, id);
-- For a scanner's start: few Namespaces mute anything.
CREATE INDEX namespaces_muting_idx ON namespaces (id) WHERE mutes <> '[]';
COMMENT ON COLUMN namespaces.mutes IS 'of domain::screen::Mute; for all its Managers, beside their own';
COMMENT ON COLUMN namespaces.content_bytes IS
    'size of mutes, by bytes_of_content; NULL if they were not written since the column exists';

CREATE TABLE connections (
    namespace_id uuid NOT NULL
        CONSTRAINT connections_namespace_fkey REFERENCES namespaces (id) ON DELETE CASCADE,
    id uuid NOT NULL,
    nickname text NOT NULL,
    url text NOT NULL,
    method text NOT NULL CONSTRAINT connections_method_check CHECK (method IN ('POST', 'PUT', 'PATCH')),
    headers_sealed bytea NOT NULL,
    state text NOT NULL DEFAULT 'ACTIVE'
        CONSTRAINT connections_state_check CHECK (state IN ('ACTIVE', 'DISABLED')),
    state_reason text,
    create_time timestamptz NOT NULL,
    update_time timestamptz NOT NULL,
    max_per_second integer
        CONSTRAINT connections_max_per_second_check CHECK (max_per_second BETWEEN 1 AND 10000),
    signing_secrets_sealed bytea,
    format text NOT NULL DEFAULT 'EARSHOT'
        CONSTRAINT connections_format_check CHECK (format IN ('EARSHOT', 'SLACK', 'DISCORD', 'TEAMS')),
    url_sealed bytea,
    CONSTRAINT connections_pkey PRIMARY KEY (namespace_id, id)
);
CREATE INDEX connections_list_idx ON connections (namespace_id, create_time, id);
-- Addresses are secrets: anyone who knows that of a Slack, Discord or Teams webhook can post there.
COMMENT ON COLUMN connections.url IS
    'the address in the clear, of rows that the release before wrote, and then it counts; empty where it is sealed';
COMMENT ON COLUMN connections.url_sealed IS 'the address, sealed as the headers are; counts where url is empty';
COMMENT ON COLUMN connections.headers_sealed IS
    'the custom headers as JSON, sealed by ChaCha20-Poly1305; the id of the key leads, see store::seal';
COMMENT ON COLUMN connections.signing_secrets_sealed IS
    'the signing secrets as a JSON array, sealed as the headers are; NULL when there are none';

CREATE TABLE managers (
    namespace_id uuid NOT NULL
        CONSTRAINT managers_namespace_fkey REFERENCES namespaces (id) ON DELETE CASCADE,
    id uuid NOT NULL,
    nickname text NOT NULL,
    enable boolean NOT NULL,
    mode text NOT NULL CONSTRAINT managers_mode_check CHECK (mode IN ('AUTOMATIC', 'MANUAL')),
    source text NOT NULL CONSTRAINT managers_source_check CHECK (source IN ('FORUM', 'MICROBLOG', 'NETWORK')),
    state text NOT NULL
        CONSTRAINT managers_state_check CHECK (state IN ('PENDING_APPLY', 'APPLIED', 'APPLY_FAILED')),
    generation bigint NOT NULL DEFAULT 1,
    input jsonb,
    submitted_instructions jsonb,
    instructions jsonb,
    apply_time timestamptz,
    apply_error_code text,
    apply_error_message text,
    submit_time timestamptz NOT NULL,
    create_time timestamptz NOT NULL,
    update_time timestamptz NOT NULL,
    recompile_after timestamptz,
    mutes jsonb NOT NULL DEFAULT '[]'
        CONSTRAINT managers_mutes_check CHECK (jsonb_typeof(mutes) = 'array' AND jsonb_array_length(mutes) <= 200),
    languages text[] NOT NULL DEFAULT '{}'
        CONSTRAINT managers_languages_check CHECK (cardinality(languages) <= 20),
    max_scans_per_day integer
        CONSTRAINT managers_max_scans_per_day_check CHECK (max_scans_per_day > 0),
    kinds text[] NOT NULL DEFAULT '{POST}'
        CONSTRAINT managers_kinds_check CHECK (cardinality(kinds) BETWEEN 1 AND 10),
    duplicates text NOT NULL DEFAULT 'KEEP'
        CONSTRAINT managers_duplicates_check CHECK (duplicates IN ('KEEP', 'COLLAPSE')),
    compiled_by uuid,
    compiled_generation bigint,
    content_bytes integer,
    crash_count smallint NOT NULL DEFAULT 0,
    recompile_failures smallint NOT NULL DEFAULT 0,
    CONSTRAINT managers_pkey PRIMARY KEY (namespace_id, id),
    CONSTRAINT managers_mode_input_check CHECK (
        CASE mode WHEN 'AUTOMATIC' THEN input IS NOT NULL ELSE submitted_instructions IS NOT NULL END
    )
);
CREATE INDEX managers_list_idx ON managers (namespace_id, create_time, id);
CREATE INDEX managers_pending_idx ON managers (submit_time) WHERE state = 'PENDING_APPLY';
CREATE INDEX managers_recompile_idx ON managers (apply_time) WHERE state = 'APPLIED' AND mode = 'AUTOMATIC';
-- Serves the compiler's look for waiting Managers, by Namespace and then by the time since when they wait.
CREATE INDEX managers_waiting_idx ON managers (mode, namespace_id, submit_time) WHERE state = 'PENDING_APPLY';
-- Serves the compiler's look for Managers that may have ended earlier compilers.
CREATE INDEX managers_crashed_idx ON managers (mode) WHERE state = 'PENDING_APPLY' AND crash_count > 0;
-- Serves the compiler's count of Managers whose compilation failed.
CREATE INDEX managers_failed_idx ON managers (namespace_id) WHERE state = 'APPLY_FAILED';
COMMENT ON COLUMN managers.generation IS
    'raised by every change that must be compiled; a result for another generation is dropped';
COMMENT ON COLUMN managers.submitted_instructions IS 'what the client wrote, of a MANUAL Manager';
COMMENT ON COLUMN managers.instructions IS 'those at work; they stay so while newer ones are compiled';
COMMENT ON COLUMN managers.submit_time IS 'when the present generation was handed to the compiler';
COMMENT ON COLUMN managers.recompile_after IS
    'not to be compiled again before: a lease while a compiler is at it, and the pause after pages that did not answer';
COMMENT ON COLUMN managers.mutes IS 'of domain::screen::Mute';
COMMENT ON COLUMN managers.languages IS 'ISO 639-1 codes; empty is all';
COMMENT ON COLUMN managers.compiled_by IS 'the replica that compiles the Manager; void when its heartbeat has ended';
COMMENT ON COLUMN managers.compiled_generation IS 'the generation that compiled_by has taken up; others may be taken up';
COMMENT ON COLUMN managers.content_bytes IS
    'size of instructions and mutes, by bytes_of_content; NULL if they were not written since the column exists';
COMMENT ON COLUMN managers.crash_count IS 'replicas in a row that died while they compiled compiled_generation';
COMMENT ON COLUMN managers.recompile_failures IS 'recompilations in a row that stored nothing';

-- Triggers count the bytes of a row for the account's quota of bytes, because every scanner keeps them in memory.
-- Submitted and compiled instructions of a Manager are mostly the same, so the larger ones count.
CREATE FUNCTION bytes_of_content(instructions jsonb, submitted_instructions jsonb, mutes jsonb) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(greatest(octet_length(instructions::text), octet_length(submitted_instructions::text)), 0)
        + coalesce(octet_length(nullif(mutes, '[]')::text), 0)
$$;

CREATE FUNCTION count_manager_content() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.content_bytes := bytes_of_content(NEW.instructions, NEW.submitted_instructions, NEW.mutes);
    RETURN NEW;
END
$$;
CREATE TRIGGER managers_count_content BEFORE INSERT OR UPDATE OF instructions, submitted_instructions, mutes ON managers
    FOR EACH ROW EXECUTE FUNCTION count_manager_content();

CREATE FUNCTION count_namespace_content() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.content_bytes := bytes_of_content(NULL, NULL, NEW.mutes);
    RETURN NEW;
END
$$;
CREATE TRIGGER namespaces_count_content BEFORE INSERT OR UPDATE OF mutes ON namespaces
    FOR EACH ROW EXECUTE FUNCTION count_namespace_content();

-- Counts the verdicts on a Manager's Scans since its last apply, so that the compiler need not search all Scans. The
-- gateway counts, and the compiler forgets.
CREATE TABLE manager_verdicts (
    namespace_id uuid NOT NULL,
    manager_id uuid NOT NULL,
    count integer NOT NULL,
    CONSTRAINT manager_verdicts_pkey PRIMARY KEY (namespace_id, manager_id),
    CONSTRAINT manager_verdicts_manager_fkey
        FOREIGN KEY (namespace_id, manager_id) REFERENCES managers (namespace_id, id) ON DELETE CASCADE
) WITH (fillfactor = 50);
CREATE INDEX manager_verdicts_count_idx ON manager_verdicts (count) WHERE count >= 2;

CREATE TABLE manager_notices (
    namespace_id uuid NOT NULL,
    manager_id uuid NOT NULL,
    position smallint NOT NULL,
    connection_id uuid NOT NULL,
    -- A condition on Scans in the grammar of lists; NULL delivers all of them.
    filter text,
    CONSTRAINT manager_notices_pkey PRIMARY KEY (namespace_id, manager_id, position),
    CONSTRAINT manager_notices_connection_key UNIQUE (namespace_id, manager_id, connection_id),
    CONSTRAINT manager_notices_manager_fkey
        FOREIGN KEY (namespace_id, manager_id) REFERENCES managers (namespace_id, id) ON DELETE CASCADE,
    CONSTRAINT manager_notices_connection_fkey
        FOREIGN KEY (namespace_id, connection_id) REFERENCES connections (namespace_id, id)
);
CREATE INDEX manager_notices_connection_idx ON manager_notices (namespace_id, connection_id);

-- The one counter that every change of a plan raises, in the transaction of the change. Its row lock puts those
-- transactions in order, so that versions become visible in ascending order.
CREATE TABLE plan_version (
    single boolean CONSTRAINT plan_version_pkey PRIMARY KEY DEFAULT true
        CONSTRAINT plan_version_single_check CHECK (single),
    version bigint NOT NULL
);
INSERT INTO plan_version (version) VALUES (0);

-- What changed at each version: scanners read the rows after the version that they know. A row only names a Manager;
-- the reader loads its present state.
CREATE TABLE plan_changes (
    version bigint CONSTRAINT plan_changes_pkey PRIMARY KEY,
    namespace_id uuid NOT NULL,
    manager_id uuid NOT NULL,
    change_time timestamptz NOT NULL,
    nonce uuid DEFAULT gen_random_uuid()
);
-- After a failover to a copy that lacks the last changes, versions are used again. The nonce tells a reader that saw the
-- lost changes.
COMMENT ON COLUMN plan_changes.nonce IS 'Random; null for changes from before this column.';
