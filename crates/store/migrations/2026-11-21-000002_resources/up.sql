-- What customers make: Namespaces, Connections, Managers. Written by the gateway; the compiler writes
-- what it compiled. The id of the Namespace leads every key, so that a later distribution by
-- Namespace needs no new keys.
CREATE TABLE namespaces (
    id uuid CONSTRAINT namespaces_pkey PRIMARY KEY,
    account_id uuid NOT NULL CONSTRAINT namespaces_account_fkey REFERENCES accounts (id),
    nickname text NOT NULL,
    create_time timestamptz NOT NULL,
    update_time timestamptz NOT NULL
);
CREATE INDEX namespaces_list_idx ON namespaces (account_id, create_time, id);

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
    CONSTRAINT connections_pkey PRIMARY KEY (namespace_id, id)
);
CREATE INDEX connections_list_idx ON connections (namespace_id, create_time, id);
COMMENT ON COLUMN connections.headers_sealed IS
    'the custom headers as JSON, sealed by ChaCha20-Poly1305; the id of the key leads, see store::seal';

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
    CONSTRAINT managers_pkey PRIMARY KEY (namespace_id, id),
    CONSTRAINT managers_mode_input_check CHECK (
        CASE mode WHEN 'AUTOMATIC' THEN input IS NOT NULL ELSE submitted_instructions IS NOT NULL END
    )
);
CREATE INDEX managers_list_idx ON managers (namespace_id, create_time, id);
CREATE INDEX managers_pending_idx ON managers (submit_time) WHERE state = 'PENDING_APPLY';
COMMENT ON COLUMN managers.generation IS
    'raised by every change that must be compiled; a result for another generation is dropped';
COMMENT ON COLUMN managers.submitted_instructions IS 'what the client wrote, of a MANUAL Manager';
COMMENT ON COLUMN managers.instructions IS 'those at work; they stay so while newer ones are compiled';
COMMENT ON COLUMN managers.submit_time IS 'when the present generation was handed to the compiler';

CREATE TABLE manager_notices (
    namespace_id uuid NOT NULL,
    manager_id uuid NOT NULL,
    position smallint NOT NULL,
    connection_id uuid NOT NULL,
    CONSTRAINT manager_notices_pkey PRIMARY KEY (namespace_id, manager_id, position),
    CONSTRAINT manager_notices_connection_key UNIQUE (namespace_id, manager_id, connection_id),
    CONSTRAINT manager_notices_manager_fkey
        FOREIGN KEY (namespace_id, manager_id) REFERENCES managers (namespace_id, id) ON DELETE CASCADE,
    CONSTRAINT manager_notices_connection_fkey
        FOREIGN KEY (namespace_id, connection_id) REFERENCES connections (namespace_id, id)
);
CREATE INDEX manager_notices_connection_idx ON manager_notices (namespace_id, connection_id);

-- The one counter that every change of what is matched raises, in the transaction of the change. Its
-- row lock puts those transactions in order, so that versions become visible in ascending order.
CREATE TABLE plan_version (
    single boolean CONSTRAINT plan_version_pkey PRIMARY KEY DEFAULT true
        CONSTRAINT plan_version_single_check CHECK (single),
    version bigint NOT NULL
);
INSERT INTO plan_version (version) VALUES (0);

-- What changed at each version: scanners read the tail that they have not seen. A row names a Manager
-- and says nothing of the change; the reader looks at the Manager as it stands.
CREATE TABLE plan_changes (
    version bigint CONSTRAINT plan_changes_pkey PRIMARY KEY,
    namespace_id uuid NOT NULL,
    manager_id uuid NOT NULL,
    change_time timestamptz NOT NULL
);
