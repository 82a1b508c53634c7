-- Accounts, their API keys and quotas, and the audit log.

-- Written only by the operator's command line (`earshot keys`, `earshot accounts set-quota`), and by `earshot dev` for
-- the account `dev`. The gateway and the compiler lock an account's row while they check a quota.
CREATE TABLE accounts (
    id uuid CONSTRAINT accounts_pkey PRIMARY KEY,
    name text NOT NULL CONSTRAINT accounts_name_key UNIQUE
        CONSTRAINT accounts_name_check CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
    create_time timestamptz NOT NULL,
    quota_managers integer CONSTRAINT accounts_quota_managers_check CHECK (quota_managers >= 0),
    quota_connections integer CONSTRAINT accounts_quota_connections_check CHECK (quota_connections >= 0),
    quota_feeds integer CONSTRAINT accounts_quota_feeds_check CHECK (quota_feeds >= 0),
    quota_scans_per_day integer
        CONSTRAINT accounts_quota_scans_per_day_check CHECK (quota_scans_per_day >= 0),
    quota_rate_limit_per_minute integer
        CONSTRAINT accounts_quota_rate_limit_per_minute_check CHECK (quota_rate_limit_per_minute >= 1),
    quota_namespaces integer
        CONSTRAINT accounts_quota_namespaces_check CHECK (quota_namespaces BETWEEN 0 AND 10000),
    quota_content_bytes integer
        CONSTRAINT accounts_quota_content_bytes_check CHECK (quota_content_bytes >= 0)
);
COMMENT ON COLUMN accounts.quota_managers IS 'NULL for the default, quotas.managers';
COMMENT ON COLUMN accounts.quota_connections IS 'NULL for the default, quotas.connections';
COMMENT ON COLUMN accounts.quota_feeds IS 'distinct feeds of enabled Managers; NULL for the default, quotas.feeds';
COMMENT ON COLUMN accounts.quota_scans_per_day IS 'NULL for the default, quotas.scans_per_day';
COMMENT ON COLUMN accounts.quota_rate_limit_per_minute IS
    'request points of all keys together; NULL for the default, gateway.account_rate_limit_per_minute';
COMMENT ON COLUMN accounts.quota_namespaces IS 'NULL for the default, quotas.namespaces';
COMMENT ON COLUMN accounts.quota_content_bytes IS
    'bytes of instructions and mutes; NULL for the default, quotas.content_bytes';

-- Written by `earshot keys`; the gateway writes last_use_time.
CREATE TABLE api_keys (
    id uuid CONSTRAINT api_keys_pkey PRIMARY KEY,
    account_id uuid NOT NULL CONSTRAINT api_keys_account_fkey REFERENCES accounts (id),
    secret_hash bytea NOT NULL CONSTRAINT api_keys_secret_hash_check CHECK (octet_length(secret_hash) = 32),
    role text NOT NULL CONSTRAINT api_keys_role_check CHECK (role IN ('OWNER', 'EDITOR', 'VIEWER')),
    namespace_ids uuid[],
    create_time timestamptz NOT NULL,
    expire_time timestamptz,
    revoke_time timestamptz,
    networks text[],
    last_use_time timestamptz
);
CREATE INDEX api_keys_account_idx ON api_keys (account_id);
COMMENT ON COLUMN api_keys.secret_hash IS 'SHA-256 of the secret part; the secret itself is stored nowhere';
COMMENT ON COLUMN api_keys.namespace_ids IS 'the Namespaces that the key is narrowed to; null for all of the account';
COMMENT ON COLUMN api_keys.networks IS 'networks in CIDR notation that the key may be used from; NULL for all';
COMMENT ON COLUMN api_keys.last_use_time IS 'up to ten minutes old; NULL if the key was never used';

-- Scans of an account on a day (UTC): the counter of its quota. Written by the scanner as the last statement of the
-- transaction that creates Scans. The scanner deletes rows after a month.
CREATE TABLE account_days (
    account_id uuid NOT NULL
        CONSTRAINT account_days_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
    day date NOT NULL,
    scans bigint NOT NULL,
    CONSTRAINT account_days_pkey PRIMARY KEY (account_id, day)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Who changed what, when, and from where. Written in the transaction of the change by the gateway, `earshot keys` and
-- `earshot accounts set-quota`; never updated. The dispatcher deletes rows older than retention.audit_events. Rows
-- outlive the Namespace and the key that they name, so they have no foreign keys to them.
CREATE TABLE audit_events (
    account_id uuid NOT NULL CONSTRAINT audit_events_account_fkey REFERENCES accounts (id),
    namespace_id uuid,
    id uuid NOT NULL CONSTRAINT audit_events_pkey PRIMARY KEY,
    create_time timestamptz NOT NULL,
    action text NOT NULL,
    resource text NOT NULL,
    fields text[] NOT NULL,
    actor_type text NOT NULL,
    key_id uuid,
    client_address text,
    request_id text
);
CREATE INDEX audit_events_list_idx ON audit_events (account_id, create_time, id);
CREATE INDEX audit_events_namespace_idx ON audit_events (account_id, namespace_id, create_time, id);
-- A read of secrets is recorded once an hour for each key, resource and client address.
CREATE INDEX audit_events_reads_idx ON audit_events (key_id, resource, create_time) WHERE action = 'READ_SECRETS';
-- Serves retention, which purges old rows by their time. It is on an expression, so that PostgreSQL never reads the list
-- of one account from it, through the events of all others.
CREATE INDEX audit_events_time_idx ON audit_events ((create_time AT TIME ZONE 'UTC'));
COMMENT ON COLUMN audit_events.namespace_id IS 'NULL for what belongs to the whole account';
COMMENT ON COLUMN audit_events.resource IS 'name of what was changed, which may be deleted by now';
COMMENT ON COLUMN audit_events.fields IS 'names of the fields that an update named; values are never here';
