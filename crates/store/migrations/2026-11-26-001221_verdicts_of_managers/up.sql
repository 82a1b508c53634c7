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

ALTER TABLE managers ADD COLUMN recompile_failures smallint NOT NULL DEFAULT 0;
COMMENT ON COLUMN managers.recompile_failures IS 'recompilations in a row that stored nothing';
