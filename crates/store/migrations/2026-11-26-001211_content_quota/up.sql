-- A quota of bytes of instructions and mutes for each account, which every scanner keeps in memory. Triggers count the
-- bytes of a row, so that rows that the release before writes are counted too.
ALTER TABLE accounts
    ADD COLUMN quota_content_bytes integer,
    ADD CONSTRAINT accounts_quota_content_bytes_check CHECK (quota_content_bytes >= 0) NOT VALID;
COMMENT ON COLUMN accounts.quota_content_bytes IS
    'bytes of instructions and mutes; NULL for the default, quotas.content_bytes';

ALTER TABLE managers ADD COLUMN content_bytes integer;
ALTER TABLE namespaces ADD COLUMN content_bytes integer;
COMMENT ON COLUMN managers.content_bytes IS
    'size of instructions and mutes, by bytes_of_content; NULL if they were not written since the column exists';
COMMENT ON COLUMN namespaces.content_bytes IS
    'size of mutes, by bytes_of_content; NULL if they were not written since the column exists';

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
