-- Tells changes apart that got the same version: after a failover to a copy that lacks the last changes, versions are
-- used again, and a reader that saw the lost changes must notice. Written by the default alone, so a service of the
-- release before writes it too. Two steps: a default at once would write all rows again under an exclusive lock.
ALTER TABLE plan_changes ADD COLUMN nonce uuid;
ALTER TABLE plan_changes ALTER COLUMN nonce SET DEFAULT gen_random_uuid();
COMMENT ON COLUMN plan_changes.nonce IS 'Random; null for changes from before this column.';
