-- Accounts and their API keys. Written by the operator's command line alone (`earshot keys`), and by
-- `earshot dev` for the account `dev`.
CREATE TABLE accounts (
    id uuid CONSTRAINT accounts_pkey PRIMARY KEY,
    name text NOT NULL CONSTRAINT accounts_name_key UNIQUE
        CONSTRAINT accounts_name_check CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
    create_time timestamptz NOT NULL
);

CREATE TABLE api_keys (
    id uuid CONSTRAINT api_keys_pkey PRIMARY KEY,
    account_id uuid NOT NULL CONSTRAINT api_keys_account_fkey REFERENCES accounts (id),
    secret_hash bytea NOT NULL CONSTRAINT api_keys_secret_hash_check CHECK (octet_length(secret_hash) = 32),
    role text NOT NULL CONSTRAINT api_keys_role_check CHECK (role IN ('OWNER', 'EDITOR', 'VIEWER')),
    namespace_ids uuid[],
    create_time timestamptz NOT NULL,
    expire_time timestamptz,
    revoke_time timestamptz
);
CREATE INDEX api_keys_account_idx ON api_keys (account_id);
COMMENT ON COLUMN api_keys.secret_hash IS 'SHA-256 of the secret part; the secret itself is stored nowhere';
COMMENT ON COLUMN api_keys.namespace_ids IS 'the Namespaces that the key is narrowed to; null for all of the account';
