-- Who changed what, when, and from where. Written in the transaction of the change, by the gateway, `earshot keys` and
-- `earshot accounts set-quota`; never updated. The dispatcher removes what is older than retention.audit_events. Rows outlive the
-- Namespace and the key that they name, so that they refer to neither.
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
-- A reading of secrets is recorded once an hour for each key, resource and client address.
CREATE INDEX audit_events_reads_idx ON audit_events (key_id, resource, create_time) WHERE action = 'READ_SECRETS';
COMMENT ON COLUMN audit_events.namespace_id IS 'NULL for what belongs to the whole account';
COMMENT ON COLUMN audit_events.resource IS 'name of what was changed, which may be deleted by now';
COMMENT ON COLUMN audit_events.fields IS 'names of the fields that an update named; values are never here';
